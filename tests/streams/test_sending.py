"""However sending ends, each row is in the run or is handed back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.errors import CallboardError
from callboard.streams import Graph, Run, RunEnded, RunError, RunTimeout, StreamError, entry
from callboard.testing import ManualSystem


class Blocked:
    """A run whose operator stays in its first row until it is opened; it holds 4 batches of 3."""

    def __init__(self, system: ActorSystem) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        graph = entry("x", int).map(self.operator).collect()
        self.run: Run[list[int]] = system.run(graph, batch_size=3, window=4)

    def operator(self, row: int) -> int:
        self.entered.set()
        assert self.opened.wait(60)
        return row


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem() as system:
        yield system


@pytest.fixture
def blocked(system: ActorSystem) -> Iterator[Blocked]:
    one = Blocked(system)
    yield one
    one.opened.set()


def sent_and_handed_back(run: Run[Any], rows: Iterator[int], **options: Any) -> RunError:
    with pytest.raises(RunError) as raised:
        run.send("x", rows, **options)
    return raised.value


def test_rows_that_a_timed_out_send_had_taken_are_handed_back(blocked: Blocked) -> None:
    rows = iter(range(50))
    error = sent_and_handed_back(blocked.run, rows, timeout=0.01)
    assert isinstance(error, RunTimeout)
    assert (error.sent, error.unsent) == (12, [12, 13, 14])
    blocked.opened.set()
    blocked.run.send("x", chain(error.unsent, rows), timeout=60)
    assert blocked.run.finish(timeout=60) == list(range(50))


def test_rows_of_a_list_are_counted_from_its_beginning(blocked: Blocked) -> None:
    rows = list(range(50))
    with pytest.raises(RunTimeout) as raised:
        blocked.run.send("x", rows, timeout=0.01)
    blocked.opened.set()
    blocked.run.send("x", rows[raised.value.sent :], timeout=60)
    assert blocked.run.finish(timeout=60) == rows


def test_a_sender_that_waits_for_another_sender_gets_its_rows_back(blocked: Blocked) -> None:
    first: list[RunError] = []

    def send() -> None:
        try:
            blocked.run.send("x", range(100))
        except RunError as error:
            first.append(error)

    other = threading.Thread(target=send)
    other.start()
    while blocked.run.statistics().rounds < 4:  # it waits for room
        pass
    error = sent_and_handed_back(blocked.run, iter([-1, -2]), timeout=0.0)
    assert (error.sent, error.unsent) == (0, [-1, -2])
    blocked.run.cancel(timeout=0.0)
    other.join(60)
    assert not other.is_alive()
    (cut,) = first
    assert isinstance(cut, RunEnded)
    assert (cut.sent, cut.unsent) == (12, [12, 13, 14])


def test_a_sender_that_finish_cuts_off_gets_back_what_it_had_taken(blocked: Blocked) -> None:
    cut: list[RunError] = []
    rows = iter(range(1000))

    def send() -> None:
        try:
            blocked.run.send("x", rows)
        except RunError as error:
            cut.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    while blocked.run.statistics().rounds < 4:
        pass
    finishing = threading.Thread(target=blocked.run.finish)
    finishing.start()
    while not blocked.run._work.life.finishing:
        pass
    blocked.opened.set()
    for thread in (sender, finishing):
        thread.join(60)
        assert not thread.is_alive()
    (error,) = cut
    assert isinstance(error, RunEnded)
    assert [*blocked.run.finish(), *error.unsent, *rows] == list(range(1000))
    assert error.sent == len(blocked.run.finish())


def test_after_a_finish_that_timed_out_no_row_is_taken(blocked: Blocked) -> None:
    blocked.run.send("x", range(12))  # the window is full: the last round does not go in
    with pytest.raises(RunTimeout):
        blocked.run.finish(timeout=0.01)
    blocked.opened.set()
    error = sent_and_handed_back(blocked.run, iter([12]))
    assert isinstance(error, RunEnded)
    assert (error.sent, error.unsent) == (0, [12])
    assert blocked.run.finish(timeout=60) == list(range(12))


def failing(count: int, error: BaseException) -> Iterator[int]:
    yield from range(count)
    raise error


@pytest.mark.parametrize("count", [0, 1, 3, 4, 299])
@pytest.mark.parametrize("kind", [ActorSystem, ManualSystem])
def test_rows_that_a_generator_gave_before_it_raised_are_sent(kind: Any, count: int) -> None:
    with kind() as system:
        run = system.run(entry("x", int).collect(), batch_size=3)
        with pytest.raises(LookupError) as raised:
            run.send("x", failing(count, LookupError("no more")))
        assert raised.value.sent == count  # type: ignore[attr-defined]
        assert raised.value.unsent == []  # type: ignore[attr-defined]
        assert run.finish(timeout=60) == list(range(count))


def test_rows_before_an_interrupt_in_a_generator_are_handed_back_at_once(blocked: Blocked) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        blocked.run.send("x", failing(5, KeyboardInterrupt()))
    assert raised.value.sent == 3  # type: ignore[attr-defined]
    assert raised.value.unsent == [3, 4]  # type: ignore[attr-defined]


def test_a_generator_may_raise_what_takes_no_attributes(system: ActorSystem) -> None:
    class Closed(Exception):
        def __setattr__(self, name: str, value: object) -> None:
            raise TypeError(name)

    run = system.run(entry("x", int).collect())
    with pytest.raises(Closed):
        run.send("x", failing(5, Closed()))
    assert run.finish(timeout=60) == list(range(5))


def test_a_generators_exception_is_not_lost_if_its_last_rows_find_no_room(blocked: Blocked) -> None:
    error = sent_and_handed_back(blocked.run, failing(13, LookupError("no more")), timeout=0.01)
    assert (error.sent, error.unsent) == (12, [12])
    assert isinstance(error.__context__, LookupError)


def test_a_failed_run_hands_rows_back_to_each_sender(system: ActorSystem) -> None:
    run = system.run(entry("x", int).map(lambda n: 1 // n).collect())
    run.send("x", [0])
    with pytest.raises(StreamError) as ended:
        run.finish(timeout=60)
    for n in (1, 2):
        with pytest.raises(StreamError, match="input 0, 0") as raised:
            run.send("x", iter([n]))
        assert (raised.value.sent, raised.value.unsent) == (0, [n])
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert ended.value.unsent == ()


def test_a_failed_run_that_is_asked_often_does_not_grow_its_error(system: ActorSystem) -> None:
    run = system.run(entry("x", int).map(lambda n: 1 // n).collect())
    run.send("x", [0])

    def depth() -> int:
        with pytest.raises(StreamError) as raised:
            run.finish(timeout=60)
        return len(raised.traceback)

    assert depth() == depth()


def test_a_run_of_a_stopped_system_takes_no_rows() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x", int).collect())
    error = sent_and_handed_back(run, iter([1]))
    assert isinstance(error, RunEnded)
    assert error.unsent == [1]


def test_a_cancelled_run_takes_no_rows(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect())
    run.cancel()
    error = sent_and_handed_back(run, iter([1]))
    assert isinstance(error, RunEnded)
    assert isinstance(error, CallboardError)
    assert (error.sent, error.unsent) == (0, [1])


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), -1, "5", True, 10**400])
def test_a_wrong_timeout_is_refused(system: ActorSystem, timeout: Any) -> None:
    run = system.run(entry("x", int).collect())
    for call in (
        lambda: run.send("x", [1], timeout=timeout),
        lambda: run.finish(timeout=timeout),
        lambda: run.cancel(timeout=timeout),
    ):
        with pytest.raises(
            ValueError, match="timeout must be a number of seconds from 0 to 1e9, got"
        ):
            call()
    run.send("x", [2])
    assert run.finish(timeout=60) == [2]


def test_in_a_sequential_run_too_rows_before_a_generators_error_come_through() -> None:
    seen: list[int] = []
    graph = entry("x", int).to(seen.append)
    with pytest.raises(LookupError):
        graph.run_sequentially({"x": failing(5, LookupError())}, batch_size=3)
    assert seen == list(range(5))


def test_a_run_that_fails_tells_senders_its_error_when_no_earlier_one_can_come() -> None:
    told = threading.Event()

    def fails_at_three(n: int) -> int:
        if n == 3:
            raise ValueError("the later row's")
        return n

    def fails_at_once(n: int) -> int:
        told.wait(0.2)  # for a sender that is told too early
        raise ValueError("the first row's")

    rows = entry("rows", int).map(fails_at_three, name="early")
    graph = Graph(
        rows.collect(name="side"), rows.map(fails_at_once, name="late").collect(name="end")
    )
    with ActorSystem(workers=1) as system:
        run = system.run(graph, threading="dedicated", batch_size=4)
        run.send("rows", [1, 2, 3, 4])  # one round, whose first error comes out by the side
        while "failed" not in repr(run):
            pass
        with pytest.raises(StreamError, match="operator 'late' failed at input 0, 1") as caught:
            run.send("rows", [5])
        told.set()
        assert caught.value.operator == "late"
        with pytest.raises(StreamError, match="operator 'late' failed at input 0, 1"):
            run.finish(timeout=60)


def test_a_sender_waits_for_a_failed_run_no_longer_than_it_wants_to() -> None:
    go_on = threading.Event()

    def fails(n: int) -> int:
        raise ValueError("out of order")

    def blocks(n: int) -> int:
        assert go_on.wait(60)
        return n

    rows = entry("rows", int)
    graph = Graph(rows.map(fails).collect(name="side"), rows.map(blocks).collect(name="end"))
    with ActorSystem(workers=1) as system:
        run = system.run(graph, threading="dedicated")
        run.send("rows", [1])
        while "failed" not in repr(run):
            pass
        with pytest.raises(RunTimeout, match="still has rounds in flight") as caught:
            run.send("rows", [2], timeout=0.01)
        assert caught.value.unsent == [2]
        go_on.set()
        with pytest.raises(StreamError, match="operator 'fails' failed"):
            run.send("rows", [2], timeout=60)
        with pytest.raises(StreamError, match="operator 'fails' failed"):
            run.finish(timeout=60)


def failed_run(system: ActorSystem) -> Run[list[float]]:
    run = system.run(entry("x", int).map(lambda row: 1 / row).collect())
    run.send("x", [0])
    return run


def test_nothing_that_is_sent_raises_why_the_run_takes_no_more(manual: ManualSystem) -> None:
    run = manual.run(entry("x", int).collect())
    run.send("x", [])
    run.finish()
    with pytest.raises(RunEnded, match="takes no more rows"):
        run.send("x", iter(()))
    failed = failed_run(manual)
    manual.run_until_idle()
    with pytest.raises(StreamError, match="failed at input 0"):
        failed.send("x", [])


def test_nothing_that_is_sent_waits_for_no_room(blocked: Blocked) -> None:
    blocked.run.send("x", range(12))
    blocked.run.send("x", [], timeout=0.0)


async def test_nothing_that_is_sent_by_asend_raises_the_same() -> None:
    async def none() -> AsyncIterator[int]:
        empty: list[int] = []
        for row in empty:
            yield row

    async with ActorSystem() as system:
        run = failed_run(system)
        with pytest.raises(StreamError):
            await run.afinish()
        with pytest.raises(StreamError):
            await run.asend("x", [])
        with pytest.raises(StreamError):
            await run.asend("x", none())


async def test_a_task_of_asend_is_made_by_ensure_future() -> None:
    async with ActorSystem() as system:
        run = system.run(entry("x", int).collect())
        await asyncio.ensure_future(run.asend("x", [1, 2]))
        assert await run.afinish() == [1, 2]
