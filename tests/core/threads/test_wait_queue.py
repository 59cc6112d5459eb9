"""No change is missed by a wait, and an exception of a signal's handler ends it."""

import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from callboard.core.threads import wait_queue
from callboard.core.threads.wait_queue import WaitQueue

DEADLINE = 30.0


class Handled(Exception):
    """What a signal's handler raises."""


def raise_at(moment: int, call: Callable[[], object]) -> bool:
    """Raise Handled at one moment of wait_for(), as a handler would. False if it has fewer."""
    passed = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal passed
        if frame.f_code is not WaitQueue.wait_for.__code__:
            return None
        frame.f_trace_opcodes = True
        if event in ("line", "opcode"):  # 3.12.1 reports lines alone
            passed += 1
            if passed == moment:
                raise Handled
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return passed >= moment


def test_an_exception_of_a_signal_handler_ends_the_wait_at_any_time() -> None:
    queue = WaitQueue()
    moment = 1
    while True:
        try:
            assert not raise_at(moment, lambda: queue.wait_for(lambda: False, 1e-4))
            break
        except Handled:
            moment += 1
    assert moment > 10, "it was traced"
    queue.notify_all()  # whoever was left in the queue
    assert not queue.wait_for(lambda: False, 1e-4)


def test_a_signal_ends_a_wait_without_end() -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        raise Handled

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        looks = 0

        def look() -> bool:
            nonlocal looks
            looks += 1
            if looks == 2:
                signal.raise_signal(signal.SIGUSR1)
            return False

        with pytest.raises(Handled):
            WaitQueue().wait_for(look)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Clock:
    """Stands in for the module `time`."""

    def __init__(self, moments: list[float]) -> None:
        self.moments = moments  # to come

    def monotonic(self) -> float:
        return self.moments.pop(0)


def test_it_looks_before_the_wait_and_at_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WaitQueue().wait_for(lambda: True, 0.0)
    assert not WaitQueue().wait_for(lambda: False, 0.0)
    monkeypatch.setattr(wait_queue, "time", clock := Clock([0.0, 0.0, 1.0]))
    assert WaitQueue().wait_for(lambda: not clock.moments, 1e-4)


def test_a_change_just_at_the_timeout_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_queue, "time", clock := Clock([0.0, 1.0]))
    assert WaitQueue().wait_for(lambda: not clock.moments, 1e-4)


@pytest.mark.parametrize("threads", [1, 4])
def test_no_change_is_missed(threads: int) -> None:
    """Threads take turns; each has only the others' notifications to wake it."""
    queue, rounds, turns = WaitQueue(), 500, 0
    missed: list[int] = []

    def take_turns(mine: int) -> None:
        nonlocal turns
        for turn in range(mine, rounds * (threads + 1), threads + 1):
            if not queue.wait_for(partial(is_turn, turn), DEADLINE):
                missed.append(turn)
                return
            turns += 1
            queue.notify_all()

    def is_turn(turn: int) -> bool:
        return turns == turn

    others = [threading.Thread(target=take_turns, args=[n + 1]) for n in range(threads)]
    for thread in others:
        thread.start()
    first = threading.Thread(target=take_turns, args=[0])  # not the main one: that one looks often
    first.start()
    for thread in [first, *others]:
        thread.join(DEADLINE)
    assert (missed, turns) == ([], rounds * (threads + 1))


class Lock:
    """Stands in for a waiter's; where it is let go first, a signal's handler raises."""

    def __init__(self, interrupts: bool = False) -> None:
        self.interrupts, self.is_free = interrupts, False

    def release(self) -> None:
        if self.interrupts:
            self.interrupts = False
            raise Handled
        self.is_free = True


def test_an_exception_of_a_handler_in_notify_comes_out_after_all_are_woken() -> None:
    queue, locks = WaitQueue(), [Lock(), Lock(interrupts=True), Lock()]
    queue._asleep.extend(locks)  # type: ignore[arg-type]
    with pytest.raises(Handled):
        queue.notify_all()
    assert [lock.is_free for lock in locks] == [True] * 3
