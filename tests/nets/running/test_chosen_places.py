"""`processes="auto"`: the executor calls a box, or worker processes do, with the same outputs."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.nets import BoxError, box, split
from callboard.nets.kernel.process_boxes import ProcessBoxNode
from callboard.nets.running.box_choice import BoxChoice
from callboard.worker_processes.choice import working
from tests.nets.places import always_leave, change_places, have_two_cores
from tests.nets.running.gate import TIMEOUT, rows, send_all, values_of
from tests.nets.running.test_in_processes import Picky, refuse_odd, same, yield_twice

HERE = os.getpid()


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(str(root))


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(root))
        have_two_cores(patched)
        with ActorSystem(processes="auto") as made:
            yield made


@pytest.fixture
def leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    have_two_cores(monkeypatch)
    always_leave(monkeypatch)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> None:
    have_two_cores(monkeypatch)
    change_places(monkeypatch)


def one_by_one(run: Any, values: Any) -> list[Any]:
    for row in rows(values):
        run.send([row], timeout=TIMEOUT)
    found: list[Any] = run.finish(TIMEOUT)
    return found


def process_of(x: Any) -> tuple[Any, int]:
    return x, os.getpid()


def locked_at_three(x: int) -> Any:
    return threading.Lock() if x == 3 else x


def yield_locked_at_three(x: int) -> Any:
    yield locked_at_three(x)


def test_boxes_begin_here_and_then_go_to_the_processes(system: ActorSystem, leaves: None) -> None:
    run = system.run(box(process_of, "(x) -> (x, pid)"))
    found = values_of(one_by_one(run, range(100)), "pid")
    assert found[0] == HERE
    assert HERE not in found[1:]
    place = run.statistics().places["/process_of"]
    assert (place["thread"], place["calls"], place["tries"]) == ("worker processes", 100, 100)


def test_boxes_in_series_that_change_their_places_keep_the_order(
    system: ActorSystem, changes: None
) -> None:
    first = box(process_of, "(x) -> (x, pid)")
    second = box(refuse_odd, "(x) -> (y)", errors="skip")
    for window in (None, 1, 5):
        found = one_by_one(system.run(first >> second, window=window), range(400))
        assert values_of(found, "y") == [*range(0, 400, 2)]
        assert len({*values_of(found, "pid")}) > 1


def test_generators_that_change_their_places_keep_the_order(
    system: ActorSystem, changes: None
) -> None:
    twice = box(yield_twice, "(x) -> (y)", errors="variant")
    expected = [y for x in range(0, 400, 2) for y in (x, -x)]
    for net in (twice, twice.with_options(errors="skip")):
        found = one_by_one(system.run(net), range(400))
        assert [each["y"] for each in found if "y" in each] == expected


def test_a_generator_that_has_to_pause_does_not_change_its_place(
    system: ActorSystem, changes: None
) -> None:
    run = system.run(box(yield_three, "(x) -> (y)"))
    sent = ({"x": x} for x in range(300))
    found = [output["y"] for output in run.results(sent, limit=1)]
    assert found == [y for x in range(300) for y in (x, -x, x)]


def yield_three(x: int) -> Iterator[int]:
    yield from (x, -x, x)


def stop_elsewhere(pid: int) -> None:
    if os.getpid() != pid:
        select.select([], [], [])


def test_the_window_counts_the_records_of_a_box_that_has_left(
    system: ActorSystem, leaves: None
) -> None:
    run = system.run(box(stop_elsewhere, "(x) -> (y)"), window=2)
    run.send(rows([HERE]), timeout=TIMEOUT)
    run.tell_many(rows([HERE] * 9))
    assert run.statistics().elsewhere == 2
    run.cancel()


def choice_of(box_node: ProcessBoxNode) -> BoxChoice:
    return BoxChoice(box_node, 2, 4)


def made_node() -> ProcessBoxNode:
    return ProcessBoxNode("/f", lambda shape: None, same, None, generates=False, collects=False)


def look(
    choice: BoxChoice, *, work: float, encoding: float, records: int = 4000, waits: float = 1.0
) -> bool:
    """Have a choice see 30 turns with these microseconds for a call, and for the encoding."""
    for _ in range(30):
        choice._note_at_once(records)
        spent = work * 1000 * records
        choice._note_work(working(spent * waits, spent), records)
        choice._encoding.add(encoding * 1000 * records, records)
        choice._size.add(choice._expected_size(), 1)
        choice._choose()
    return choice.is_here


def test_costs_decide_where_a_box_runs() -> None:
    choice = choice_of(made_node())
    assert look(choice, work=1, encoding=1)
    assert look(choice, work=5, encoding=3)  # (5 + 6) / 2 is not clearly less
    assert not look(choice, work=20, encoding=3)
    assert look(choice, work=2, encoding=3)
    assert "us of work a row" in choice.reason


def test_records_that_come_one_by_one_stay_here() -> None:
    choice = choice_of(made_node())
    assert look(choice, work=1000, encoding=3, records=1)
    assert not look(choice, work=1000, encoding=3, records=8)
    assert look(choice, work=1000, encoding=3, records=1)


def test_a_box_that_waits_goes_by_the_time_that_it_takes() -> None:
    assert not look(choice_of(made_node()), work=1, encoding=3, waits=100)


@pytest.mark.parametrize("value", [Picky(), threading.Lock()], ids=["row", "lock"])
def test_a_record_that_cannot_be_pickled_keeps_a_box_here(
    system: ActorSystem, leaves: None, value: Any
) -> None:
    run = system.run(box(same, "(x) -> (y)"))
    sent = [1, 2, value, 4]
    assert values_of(one_by_one(run, sent), "y") == sent
    place = run.statistics().places["/same"]
    assert (place["thread"], place["reason"]) == ("", "a record cannot be pickled")


@pytest.mark.parametrize("function", [locked_at_three, yield_locked_at_three])
def test_an_output_that_cannot_be_pickled_keeps_a_box_here(
    system: ActorSystem, leaves: None, function: Any
) -> None:
    run = system.run(box(function, "(x) -> (y)"))
    found = values_of(one_by_one(run, range(9)), "y")
    assert type(found.pop(3)) is type(threading.Lock())
    assert found == [0, 1, 2, *range(4, 9)]
    place = run.statistics().places[f"/{function.__name__}"]
    assert (place["thread"], place["reason"]) == ("", "an output cannot be pickled")


def test_a_function_that_cannot_be_pickled_stays_here(system: ActorSystem, leaves: None) -> None:
    lock = threading.Lock()

    def guarded(x: int) -> int:
        with lock:
            return x

    run = system.run(box(guarded, "(x) -> (y)"))
    assert values_of(one_by_one(run, range(9)), "y") == [*range(9)]
    place = run.statistics().places["/guarded"]
    assert (place["thread"], place["reason"]) == ("", "the function cannot be pickled")


class Counter:
    """A box with a state."""

    def __init__(self) -> None:
        self.counts = count()

    def __call__(self, x: int) -> tuple[int, int, int]:
        return x, next(self.counts), os.getpid()


def test_boxes_with_states_stay_here(system: ActorSystem, leaves: None) -> None:
    run = system.run(box(Counter, "(x) -> (x, n, pid)"))
    assert {*values_of(one_by_one(run, range(9)), "pid")} == {HERE}


def test_errors_name_their_records_wherever_a_box_runs(system: ActorSystem, changes: None) -> None:
    check_errors_of_replicas(system)


def check_errors_of_replicas(system: ActorSystem) -> None:
    """Have every other replica of a box fail. Each error has to name its own record."""
    run = system.run(split(box(refuse_odd, "(x) -> (y)"), "x"))
    answers = [run.ask({"x": x}) for x in range(60)]
    for x, answer in enumerate(answers):
        if x % 2:
            with pytest.raises(BoxError, match=f"ValueError: {x}") as caught:
                answer.result(TIMEOUT)
            assert caught.value.record == {"x": x}
        else:
            assert [output["y"] for output in answer.result(TIMEOUT)] == [x]
    run.cancel()


def test_a_box_that_costs_little_stays_here(system: ActorSystem) -> None:
    run = system.run(box(abs, "(x) -> (y)"))
    for _ in range(20):
        run.send(rows(range(512)), timeout=TIMEOUT)
    assert len(run.finish(TIMEOUT)) == 20 * 512
    place = run.statistics().places["/abs"]
    assert place["thread"] == ""
    assert "us of work a row" in place["reason"]


def test_a_single_core_has_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    have_two_cores(monkeypatch)
    monkeypatch.setattr("callboard.worker_processes.processes.usable_cores", lambda: 1)
    with ActorSystem(processes="auto") as alone:
        run = alone.run(box(process_of, "(x) -> (x, pid)"))
        assert {*values_of(send_all(run, rows(range(9))), "pid")} == {HERE}
        assert run.statistics().places["/process_of"]["reason"] == ""


def test_an_instance_method_is_no_plain_function(system: ActorSystem, leaves: None) -> None:
    run = system.run(box(partial(Counter().__call__), "(x) -> (x, n, pid)", name="method"))
    assert {*values_of(one_by_one(run, range(9)), "pid")} == {HERE}
