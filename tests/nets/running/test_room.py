"""The numbers of records in flight and of outputs that wait to be taken are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.nets import BoxError, NetRun, NetTimeout, RecordError, box, star, sync
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, Gate, rows, values_of, within

LIMIT = 4
MANY = 200
SLACK = 2  # one output of the record that is being carried, and one that was taken

double = box(lambda x: 2 * x, "(x) -> (y)", name="double")
copies = filtering("{x} -> {y=x}; {y=x}; {y=x}")


async def twice(x: int) -> int:
    return 2 * x


@box("(x) -> (y)")
def many(x: int) -> Iterator[int]:
    yield from range(x)


def begun(run: NetRun, limit: int) -> Iterator[Any]:
    """Take one output: from then on `limit` of them may wait."""
    results = run.results(limit=limit)
    run.send({"x": 1}, timeout=TIMEOUT)
    within(next, results).result(TIMEOUT)
    return results


@pytest.mark.parametrize("net", [double, box(twice, "(x) -> (y)")], ids=["here", "elsewhere"])
def test_sends_wait_while_outputs_are_not_taken(system: ActorSystem, net: Any) -> None:
    run = system.run(net, window=4)
    results = begun(run, LIMIT)
    with pytest.raises(NetTimeout) as caught:
        run.send(rows(range(MANY)), timeout=0.05)
    sent = caught.value.sent  # type: ignore[attr-defined]
    assert sent < LIMIT + 4 + SLACK  # outputs that wait, and the window
    assert caught.value.unsent == rows(range(sent, MANY))  # type: ignore[attr-defined]
    # What was sent is in, and nothing else.
    taken = [within(next, results).result(TIMEOUT)["y"] for _ in range(sent)]
    assert sorted(taken) == [2 * x for x in range(sent)]
    run.send(rows(range(sent, sent + 2)), timeout=TIMEOUT)
    assert len(run.finish(TIMEOUT)) == 2


def test_a_generator_waits_while_its_outputs_are_not_taken(system: ActorSystem) -> None:
    run = system.run(many)
    results = begun(run, LIMIT)
    with pytest.raises(NetTimeout):
        run.send(rows([1_000_000, 5]), timeout=0.05)
    assert run.statistics().hops < 100
    for expected in range(10):
        assert within(next, results).result(TIMEOUT) == {"y": expected}
    assert run.statistics().hops < 200
    run.cancel(TIMEOUT)


def test_a_generator_elsewhere_waits_while_its_outputs_are_not_taken() -> None:
    taken: list[int] = []

    def noted(x: int) -> Iterator[int]:
        for number in range(x):
            taken.append(number)
            yield number

    with ActorSystem(workers=2) as system:
        run = system.run(box(noted, "(x) -> (y)", dedicated=True), window=4)
        results = begun(run, LIMIT)
        taken.clear()
        run.send({"x": 100_000}, timeout=TIMEOUT)
        assert within(next, results).result(TIMEOUT) == {"y": 0}
        run.statistics()
        assert len(taken) < 10_000
        run.cancel(TIMEOUT)


def test_many_outputs_of_one_record_are_taken_bit_by_bit(system: ActorSystem) -> None:
    run = system.run(copies >> filtering("{y} -> {y}; {y}"))
    results = begun(run, 1)
    for _ in range(5):
        within(next, results).result(TIMEOUT)
    with pytest.raises(NetTimeout) as caught:
        run.send(rows(range(MANY)), timeout=0.05)
    assert caught.value.sent <= 2  # type: ignore[attr-defined]
    assert len(run.finish(TIMEOUT)) == 6 * caught.value.sent  # type: ignore[attr-defined]


@pytest.mark.parametrize("window", [1, 3, 256])
def test_a_window_bounds_the_records_on_their_way(system: ActorSystem, window: int) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"), window=window)
    waits = within(lambda: run.send(rows(range(window + 5)), timeout=TIMEOUT))
    for x in range(window):
        assert gate.next() == x
    assert run.statistics().elsewhere == window
    assert run.statistics().sent == window
    gate.open(*range(window + 5))
    waits.result(TIMEOUT)
    assert sorted(values_of(run.finish(TIMEOUT), "y")) == list(range(window + 5))
    assert gate.most == window


def test_a_timeout_names_the_records_that_went_in(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"), window=3)
    with pytest.raises(NetTimeout) as caught:
        run.send(rows(range(10)), timeout=0.05)
    assert caught.value.sent == 3  # type: ignore[attr-defined]
    assert caught.value.unsent == rows(range(3, 10))  # type: ignore[attr-defined]
    gate.open(*range(10))
    run.send(caught.value.unsent, timeout=TIMEOUT)  # type: ignore[attr-defined]
    assert sorted(values_of(run.finish(TIMEOUT), "y")) == list(range(10))


def test_outputs_an_iterator_holds_are_not_unsent(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"), window=3)
    left = iter(rows(range(5000)))
    with pytest.raises(NetTimeout) as caught:
        run.send(left, timeout=0.05)
    rest = [*caught.value.unsent, *left]  # type: ignore[attr-defined]
    assert rest == rows(range(3, 5000))
    gate.open(*range(3))
    assert len(run.finish(TIMEOUT)) == 3


@box("(x) -> (y)")
def positive(x: int) -> int:
    if x < 0:
        raise ValueError(x)
    return x


@pytest.mark.parametrize("bad", [0, 3, 511, 512, 600])
@pytest.mark.parametrize("row", [{"x": -1}, {"z": 1}, 7], ids=["box fails", "fits nowhere", "none"])
def test_an_error_names_the_records_that_went_in(system: ActorSystem, bad: int, row: Any) -> None:
    run = system.run(positive)
    records = [*rows(range(bad)), row, *rows(range(100))]
    with pytest.raises((BoxError, RecordError)) as caught:
        run.send(records, timeout=TIMEOUT)
    sent = caught.value.sent  # type: ignore[attr-defined]
    unsent = caught.value.unsent  # type: ignore[attr-defined]
    assert sent in (bad, bad + 1)  # the record that failed went in, or it did not
    assert unsent == records[sent : len(unsent) + sent]
    assert sent + len(unsent) in (min(512, len(records)), len(records))


def test_records_in_cells_take_no_room(system: ActorSystem) -> None:
    gate = Gate()
    pairs = star(sync("{a}", "{b}"), "{a, b}")
    run = system.run(pairs >> box(gate.wait_here, "(a) -> (y)"), window=2)
    run.send(rows(range(MANY), "a"), timeout=TIMEOUT)
    assert run.statistics().in_cells == MANY
    waits = within(lambda: run.send(rows(range(MANY), "b"), timeout=TIMEOUT))
    gate.open(*range(MANY))
    waits.result(TIMEOUT)
    assert len(run.finish(TIMEOUT)) == MANY


def test_asks_wait_for_room_and_come_after_all(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"), window=1)
    asked = [run.ask({"x": x}) for x in range(5)]
    for x in range(5):
        assert gate.next() == x
        assert gate.now == 1
        gate.open(x)
        assert asked[x].result(TIMEOUT) == [{"y": x}]
    assert run.finish(TIMEOUT) == []
