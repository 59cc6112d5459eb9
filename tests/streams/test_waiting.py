"""Callers that wait for a run are woken however it ends."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.core.errors import CallboardError, ForkedSystem
from callboard.streams import Graph, Run, RunEnded, RunError, RunTimeout, entry
from callboard.streams.running.execution import Execution
from callboard.streams.running.waiting import Waiting
from callboard.testing import ManualSystem


class Blocked:
    """A run whose operator stays in its first row until it is opened."""

    def __init__(self, system: ActorSystem) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        graph = entry("x", int).map(self.operator).collect()
        self.run: Run[list[int]] = system.run(graph, batch_size=1, window=2)
        self.run.send("x", [0])
        assert self.entered.wait(60)

    def operator(self, row: int) -> int:
        self.entered.set()
        assert self.opened.wait(60)
        return row


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    with ActorSystem() as system:
        one = Blocked(system)
        yield one
        one.opened.set()


class Caller(threading.Thread):
    """Calls a method of a run, and keeps what it raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.call, self.raised = call, ""
        self.start()

    def run(self) -> None:
        try:
            self.call()
        except CallboardError as error:
            self.raised = str(error)

    def ends(self) -> str:
        """Wait for its end, and say what it raised."""
        self.join(30)
        assert not self.is_alive()
        return self.raised


def test_a_sender_is_woken_by_a_cancel_that_does_not_wait_for_an_operator(blocked: Blocked) -> None:
    sender = Caller(lambda: blocked.run.send("x", range(100)))
    while blocked.run.statistics().rounds < 2:  # the window is full
        pass
    blocked.run.cancel(timeout=0.0)
    assert "was cancelled" in sender.ends()


def test_cancel_does_not_wait_for_a_finish_that_waits(blocked: Blocked) -> None:
    finishing = Caller(blocked.run.finish)
    while blocked.run.statistics().rounds < 2:  # the last one is on its way
        pass
    blocked.run.cancel(timeout=0.0)
    assert "was cancelled" in finishing.ends()


def test_a_cancel_during_another_that_waits_lets_that_one_return(blocked: Blocked) -> None:
    waiting = Caller(lambda: blocked.run.cancel(timeout=3600.0))
    while not blocked.run._work.ending.locked():
        pass
    blocked.run.cancel(timeout=0.0)
    assert waiting.ends() == ""


@pytest.mark.parametrize("call", ["send", "finish", "cancel"])
def test_a_call_that_is_interrupted_just_as_it_has_the_lock_leaves_it_to_others(call: str) -> None:
    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        takers = Waiting.acquire.__code__, Execution._begin_sending.__code__
        if frame.f_code in takers and event == "return":
            raise KeyboardInterrupt
        return interrupt

    with ActorSystem() as system:
        run = system.run(entry("x").collect())
        calls: dict[str, Callable[[], Any]] = {
            "send": lambda: run.send("x", [1]),
            "finish": run.finish,
            "cancel": run.cancel,
        }
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                calls[call]()
        finally:
            sys.settrace(before)
        assert not run._work.lock.locked()
        assert not run._work.ending.locked()
        run.cancel()


def test_leaving_a_run_whose_system_was_stopped_raises_what_it_is_left_by() -> None:
    def leave(run: Run[Any]) -> None:
        with run:
            run.send("x", [1])  # on its way: nothing has run yet
            system.stop()
            raise LookupError("the first")

    system = ManualSystem()
    run = system.run(entry("x").collect())
    with pytest.raises(LookupError, match="the first"):
        leave(run)
    with pytest.raises(RunEnded):
        run.send("x", [2])


def test_finish_times_out_beside_another_that_waits(blocked: Blocked) -> None:
    finishing = Caller(blocked.run.finish)
    while blocked.run.statistics().rounds < 2:
        pass
    with pytest.raises(RunTimeout, match="did not end in"):
        blocked.run.finish(timeout=0.01)
    blocked.opened.set()
    assert finishing.ends() == ""


def test_an_actor_that_waits_behind_another_sender_helps_with_the_work() -> None:
    class Sender(Actor[Run[Any]]):
        def receive(self, run: Run[Any]) -> None:
            run.send("x", range(100))

    with ActorSystem() as system:  # whose only worker is the actor's
        graph = entry("x", int).collect()
        for _ in range(20):
            run = system.run(graph, batch_size=1, window=2)
            other = Caller(lambda run=run: run.send("x", range(100)))  # type: ignore[misc]
            system.spawn(Sender).ask(run).result(timeout=30)
            assert other.ends() == ""
            assert len(run.finish(timeout=30)) == 200


def test_an_actor_that_a_sender_runs_while_it_waits_is_refused_to_wait_for_that_sender() -> None:
    class Sender(Actor[Run[Any]]):
        def receive(self, run: Run[Any]) -> None:
            calls: list[Callable[[], Any]] = [
                lambda: run.send("x", [-1], timeout=20.0),
                lambda: run.finish(timeout=20.0),
                lambda: run.cancel(timeout=20.0),
            ]
            for call in calls:
                try:
                    call()
                    raised.append("")
                except RunError as error:
                    raised.append(str(error))

    raised: list[str] = []
    with ManualSystem() as system:
        run = system.run(entry("x", int).collect(), batch_size=1, window=1)
        system.spawn(Sender).tell(run)
        with pytest.raises(RunEnded):  # the actor cancels it in the end
            run.send("x", itertools.count())
    assert "would wait for itself" in raised[0]
    assert "would wait for itself" in raised[1]
    assert raised[2:] == [""]


def test_a_thread_may_run_a_system_beside_one_that_waits_for_room(manual: ManualSystem) -> None:
    run = manual.run(entry("x", int).collect(), batch_size=1, window=1)
    other = Caller(lambda: run.send("x", range(100)))
    while not run._work.flow.admitted:
        pass
    while other.is_alive():
        run.send("x", [-1], timeout=20.0)
    assert other.ends() == ""
    assert [row for row in run.finish() if row >= 0] == list(range(100))


def test_a_run_whose_system_was_stopped_has_no_result_however_often_one_asks() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x", int).collect())
        run.send("x", [1])
        system.drain()
    for _ in range(2):
        with pytest.raises(CallboardError, match="was stopped"):
            run.finish(timeout=30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_of_a_process_with_a_run_is_refused_it() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x", int).collect())
        child = os.fork()
        if child == 0:
            try:
                run.finish(timeout=30)
            except ForkedSystem:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert run.finish(timeout=30) == []


def test_an_idle_worker_takes_a_round_that_comes_beside_a_long_one() -> None:
    began, came = threading.Event(), threading.Event()

    def wait(row: int) -> bool:
        began.set()
        return came.wait(30)

    long = entry("long", int).map(wait, releases_gil=True).collect(name="waited")
    short = entry("short", int).map(lambda _: came.set(), releases_gil=True).collect(name="came")
    with ActorSystem(workers=2) as system:
        run = system.run(Graph(long, short))
        run.send("long", [1])
        assert began.wait(30)
        run.send("short", [1])
        assert came.wait(30)  # before finish(), which wakes everybody
        assert run.finish(timeout=60)["waited"] == [True]
