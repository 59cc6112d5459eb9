"""A system is idle when no row of its runs is in flight, even if no thread works on one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DrainTimeout
from callboard.streams import Stream, StreamError, entry
from callboard.testing import ManualSystem
from tests.streams.answering import Holding
from tests.waiting import until

ROWS = list(range(10))


async def slow(row: int) -> int:
    for _ in range(20):
        await asyncio.sleep(0.0005)
    return row


class Once:
    """A coroutine that raises the first time that it has a row."""

    def __init__(self) -> None:
        self.had: set[int] = set()

    async def __call__(self, row: int) -> int:
        if row not in self.had:
            self.had.add(row)
            raise ConnectionError(row)
        return row


class Failing(Actor[int]):
    """Raises the first time that it has a row."""

    def __init__(self) -> None:
        self.had: set[int] = set()

    def receive(self, row: int) -> int:
        if row not in self.had:
            self.had.add(row)
            raise ConnectionError(row)
        return row


def unfinished(kind: str, system: ActorSystem) -> Stream[Any]:
    """Make a stream whose rows wait where no thread is."""
    rows = entry("n", int)
    if kind == "coroutines":
        return rows.map(slow, in_flight=4)
    if kind == "coroutines as they come":
        return rows.map(slow, in_flight=4, ordered=False)
    if kind == "pauses of coroutines":
        return rows.map(Once(), in_flight=4, retries=1, backoff=0.01)
    if kind == "pauses of asks":
        ref = system.spawn(Failing, supervision="resume")
        return rows.ask(ref, in_flight=4, retries=1, backoff=0.01)
    assert kind == "rests"
    return rows.throttle(500)


KINDS = pytest.mark.parametrize(
    "kind",
    ["coroutines", "coroutines as they come", "pauses of coroutines", "pauses of asks", "rests"],
)
MODELS = pytest.mark.parametrize("threading", ["dynamic", "assigned", "dedicated"])


@KINDS
@MODELS
def test_drain_waits_for_rows_that_no_thread_is_at(kind: str, threading: Any) -> None:
    out: list[int] = []
    with ActorSystem(workers=2) as system:
        run = system.run(unfinished(kind, system).to(out.append), threading=threading)
        for _ in range(2):
            run.send("n", ROWS)
        system.drain(timeout=60)
        assert sorted(out) == sorted(ROWS * 2)
        run.finish(timeout=60)


@KINDS
def test_the_end_of_with_waits_for_rows_that_no_thread_is_at(kind: str) -> None:
    out: list[int] = []
    with ActorSystem(workers=2) as system:
        run = system.run(unfinished(kind, system).to(out.append), batch_size=3)
        run.send("n", ROWS)
    assert sorted(out) == ROWS


@KINDS
def test_a_manual_system_drains_rows_that_no_thread_is_at(kind: str) -> None:
    out: list[int] = []
    with ManualSystem() as system:
        run = system.run(unfinished(kind, system).to(out.append), batch_size=3)
        run.send("n", ROWS)
        system.drain(timeout=60)
        assert sorted(out) == ROWS
        run.finish()


def test_drain_waits_for_answers_of_another_system_and_its_timeout_names_the_operator() -> None:
    out: list[int] = []
    with ActorSystem(workers=1) as there, ActorSystem(workers=2) as system:
        ref = there.spawn(Holding)
        run = system.run(entry("n", int).ask(ref, in_flight=4, name="look up").to(out.append))
        run.send("n", [1, 2])
        until(lambda: len(ref.ask("asked").result(60)) == 2)
        with pytest.raises(DrainTimeout, match="look up waits for 2 answers"):
            system.drain(timeout=0.05)
        ref.tell("answer")
        system.drain(timeout=60)
        assert out == [2, 4]
        run.finish(timeout=60)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("end", ["cancel", "drop", "fail"])
def test_drain_does_not_wait_for_rows_of_a_run_that_has_ended(ordered: bool, end: str) -> None:
    begun = threading.Event()

    async def endless(row: int) -> int:
        if row == 5:
            raise LookupError(row)
        begun.set()
        await asyncio.Event().wait()
        return row

    with ActorSystem(workers=2) as system:
        stream = entry("n", int).map(endless, in_flight=4, ordered=ordered)
        run = system.run(stream.to(print), batch_size=1)
        if end == "fail":
            with suppress(StreamError):  # the first row may have failed by then
                run.send("n", [5, 1, 2])
        else:
            run.send("n", [1, 2])
            assert begun.wait(60)
        if end == "cancel":
            run.cancel(timeout=60)
        elif end == "drop":
            with pytest.warns(ResourceWarning, match="never finished"):
                del run
        system.drain(timeout=60)


def test_cancel_ends_a_drain_that_waits_for_a_throttled_row() -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(entry("n", int).throttle(0.001).to(print), batch_size=1)
        run.send("n", [1, 2, 3])
        drained = system.adrain(timeout=60)
        run.cancel(timeout=60)
        drained.result(60)
