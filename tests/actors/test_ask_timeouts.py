"""Timeouts of asks, which the timers enforce."""

import gc
import threading
import time
import weakref
from itertools import pairwise
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, AskTimeout, Future
from tests.waiting import in_threads


def let_go(system: ActorSystem) -> None:
    """Wait until the timers' thread has let go of the asks that it looked at."""
    with system._runtime.timers._lock:
        pass


def test_an_ask_with_a_timeout_is_not_forgotten_when_a_system_leaves_a_stuck_actor_behind() -> None:
    class Stuck(Actor[Any]):
        def receive(self, message: Any) -> None:
            entered.set()
            assert gate.wait(30)

    entered, gate = threading.Event(), threading.Event()
    system = ActorSystem()
    ref: ActorRef[Any] = system.spawn(Stuck)
    future = ref.ask("x", timeout=10_000)
    assert entered.wait(30)
    with pytest.raises(TimeoutError):
        system.stop(timeout=0.01)
    with pytest.raises(AskTimeout):
        future.result(timeout=30)
    with pytest.raises(AskTimeout, match="before its system was stopped"):
        ref.ask("y", timeout=10_000).result(timeout=30)
    gate.set()


def test_an_answer_lives_no_longer_for_its_asks_timeout(system: ActorSystem) -> None:
    class Answer:
        pass

    class Answers(Actor[Any]):
        def receive(self, message: Any) -> Answer:
            return Answer()

    ref = system.spawn(Answers)
    answers = [weakref.ref(ref.ask(number, timeout=3600.0).result()) for number in range(10)]
    system.drain()
    let_go(system)
    gc.collect()
    assert [answer for answer in answers if answer() is not None] == []


def test_an_ask_whose_timeout_cannot_be_kept_sends_nothing(
    system: ActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Collects(Actor[Any]):
        def __init__(self) -> None:
            self.messages: list[Any] = []

        def receive(self, message: Any) -> list[Any]:
            self.messages.append(message)
            return self.messages

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ref = system.spawn(Collects)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="can't start"):
                ref.ask("lost", timeout=60)
    assert ref.ask("kept", timeout=60).result(timeout=30) == ["kept"]


def test_asks_of_many_threads_time_out_beside_timers_that_fire() -> None:
    class Never(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return Future() if message == "never" else message

        def on_start(self) -> None:
            self.every(0.001, "tick")

    def asks(number: int) -> None:
        for each in range(300):
            if each % 50 == number:
                futures.append(ref.ask("never", timeout=0.005 * (each % 7)))
            assert ref.ask(each, timeout=60 + each % 3).result() == each

    futures: list[Future[Any]] = []
    with ActorSystem() as system:
        ref = system.spawn(Never)
        in_threads(asks, range(4))
        assert len(futures) == 24
        for future in futures:
            with pytest.raises(AskTimeout):
                future.result(timeout=30)
        ref.stop()


def test_asks_time_out_in_order_among_many_that_are_answered(system: ActorSystem) -> None:
    class Never(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return Future() if message == "never" else message

    ref = system.spawn(Never)
    over: list[int] = []
    last = threading.Event()
    due: list[tuple[float, float]] = []  # between these two moments
    for number, timeout in enumerate((0.3, 0.1, 0.2)):
        for each in range(50):  # these need no timer
            assert ref.ask(each, timeout=3600.0).result(timeout=30) == each

        def note(future: Any, number: int = number) -> None:
            assert isinstance(future.exception(), AskTimeout)
            over.append(number)
            if len(over) == 3:
                last.set()

        earliest = time.monotonic() + timeout
        future = ref.ask("never", timeout=timeout)
        future.add_done_callback(note)
        due.append((earliest, time.monotonic() + timeout))
    assert last.wait(30)
    # On a busy machine the third may be asked so late that it is over after the first.
    for before, after in pairwise(over):
        assert due[before][0] <= due[after][1]
