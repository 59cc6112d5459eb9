"""Boxes that are generators, and their outputs if the box fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from threading import Event
from typing import Any

import pytest

from callboard import ActorSystem, DeadLetter, Future
from callboard.nets import Box, BoxError, Net, NetError, NetOperator, box, ordered
from callboard.nets import filter as filtering
from callboard.nets.running.coordinator import Coordinator
from callboard.nets.running.messages import Take
from tests.nets.running.gate import TIMEOUT, rows, send_all, values_of

GENERATORS = ["here", "threads", "async"]


def generating(kind: str, *values: Any, error: Exception | None = None, **options: Any) -> Box:
    """Return a box that yields values, then ends or raises an error."""

    def generator(x: int) -> Iterator[Any]:
        yield from values
        if error is not None:
            raise error

    async def async_generator(x: int) -> AsyncIterator[Any]:
        for value in values:
            yield value
        if error is not None:
            raise error

    function: Any = async_generator if kind == "async" else generator
    return box(function, "(x) -> (y)", name="many", threads=kind == "threads", **options)


@pytest.mark.parametrize("fault", ["raises", "no output"])
@pytest.mark.parametrize("keeps_order", [False, True])
@pytest.mark.parametrize("options", [{}, {"retries": 2, "backoff": 0.0}], ids=["", "retries"])
@pytest.mark.parametrize("errors", ["skip", "variant"])
@pytest.mark.parametrize("kind", GENERATORS)
def test_a_record_that_fails_is_an_error_and_has_no_outputs(
    system: ActorSystem,
    letters: list[DeadLetter],
    kind: str,
    errors: Any,
    options: dict[str, Any],
    keeps_order: bool,
    fault: str,
) -> None:
    made = [1, 2, {"z": 3}] if fault == "no output" else [1, 2]
    error = ValueError("late") if fault == "raises" else None
    net: Net = generating(kind, *made, error=error, errors=errors, **options)
    if keeps_order:
        net = ordered(net)
    outputs = send_all(system.run(net), rows([0, 1]))
    assert [set(row) for row in outputs] == ([{"error"}] * 2 if errors == "variant" else [])
    assert [letter.message for letter in letters] == (rows([0, 1]) if errors == "skip" else [])
    operator = NetOperator(net)
    in_a_stream = [row for x in (0, 1) for row in operator.receive({"x": x})]
    assert [set(row) for row in in_a_stream] == [set(row) for row in outputs]
    assert operator.on_final() == []


@pytest.mark.parametrize("errors", ["skip", "variant", "fail"])
@pytest.mark.parametrize("kind", GENERATORS)
def test_a_generators_outputs_keep_their_order(system: ActorSystem, kind: str, errors: Any) -> None:
    net = generating(kind, *range(200), errors=errors)
    for each in (net, ordered(net), ordered(net >> filtering("{y} -> {y}"))):
        assert values_of(send_all(system.run(each), rows([0])), "y") == [*range(200)]
        assert values_of(NetOperator(each).receive({"x": 0}), "y") == [*range(200)]


@pytest.mark.parametrize("kind", GENERATORS)
def test_outputs_leave_one_by_one_if_an_error_ends_the_run(system: ActorSystem, kind: str) -> None:
    run = system.run(generating(kind, 1, 2, error=ValueError("late")))
    results = run.results()
    run.tell({"x": 0})
    assert [next(results)["y"], next(results)["y"]] == [1, 2]
    with pytest.raises(BoxError, match="late"):
        next(results)
    run = system.run(generating(kind, 1, 2, error=ValueError("late")))
    with pytest.raises(BoxError, match="late"):
        run.ask({"x": 0}).result(TIMEOUT)
    with pytest.raises(BoxError, match="late"):
        NetOperator(generating(kind, 1, 2, error=ValueError("late"))).receive({"x": 0})


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_generator_without_end_whose_outputs_are_held_ends_with_its_run(
    system: ActorSystem, letters: list[DeadLetter], kind: str
) -> None:
    began, ended = Event(), Event()

    def endless(x: int) -> Iterator[int]:
        try:
            while True:
                began.set()
                yield x
        finally:
            ended.set()

    async def async_endless(x: int) -> AsyncIterator[int]:
        for each in endless(x):
            yield each

    function: Any = async_endless if kind == "async" else endless
    net = box(function, "(x) -> (y)", errors="skip", threads=kind == "threads")
    run = system.run(net)
    run.tell({"x": 1})
    assert began.wait(TIMEOUT)
    run.cancel(TIMEOUT)
    assert ended.wait(TIMEOUT)
    assert [(letter.message, letter.reason) for letter in letters] == [({"x": 1}, "stopped")]


def test_a_fault_of_the_run_is_raised(system: ActorSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    run = system.run(generating("here", 1))

    def fails(*_: object) -> None:
        raise ArithmeticError("a fault")

    monkeypatch.setattr(Coordinator, "_let_in", fails)
    answer: Future[Any] = Future()
    run._coordinator.tell(Take(answer))  # before the record, as it is told from the same thread
    run.tell({"x": 1})
    with pytest.raises(NetError, match="a fault"):
        answer.result(TIMEOUT)


@pytest.mark.parametrize("place", [0, 1, "balanced"])
def test_a_generator_on_a_worker_may_have_many_outputs(system: ActorSystem, place: Any) -> None:
    def many(x: int) -> Iterator[int]:
        yield from range(300)

    run = system.run(box(many, "(x) -> (y)", threads=True).at(place))
    assert values_of(send_all(run, rows(range(2))), "y") == [*range(300)] * 2
