"""Timers: messages and calls at a later time, by the system's clock."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.answers.pending_asks import Deadlines
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core import checks
from callboard.core.errors import AskTimeout
from callboard.core.handles import CopiedAsItself
from callboard.core.interrupts import comes_from_signal
from callboard.core.log import log

# Cancelled timers stay in the heap until they are due, or until they are this many and most of it.
_MANY = 64


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Timer(CopiedAsItself):
    """A call at a later time, once or periodically, until it is cancelled."""

    _timers: Timers
    action: Callable[..., object]
    period: float | None
    at_close: bool = False
    takes_timer: bool = False
    is_over: bool = False
    is_cancelled: bool = False

    def cancel(self) -> bool:
        """Prevent calls that are still to come. Return False if there are none.

        In any thread. A message that was sent already, and waits in the mailbox, still comes,
        unless it is that of an actor's own timer with a key.
        """
        self.is_cancelled = True
        return self._timers._cancel(self)

    def __repr__(self) -> str:
        when = "once" if self.period is None else f"every {self.period:g} s"
        return f"<Timer {when}{', over' if self.is_over else ''}>"


class _Sleep(Future[None]):
    """A timer that only completes this future, so that it needs no action and no lock for that."""

    __slots__ = ()
    is_over = False  # one that is cancelled stays in the heap until it is due

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.TIMER)


class Timers(Deadlines):
    """The timers of one system.

    A thread, started with the first timer, sleeps until the next is due and sends its
    message. So timers are on time also when all workers are busy, and a system without timers has
    no such thread.
    """

    def __init__(self, name: str = "callboard") -> None:
        self._name = name
        # A signal's handler may raise in Condition.__enter__() and __exit__(), and the lock would
        # stay taken: those are functions in Python, the lock's own are not.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._heap: list[tuple[float, int, Timer | _Sleep]] = []
        self._cancelled = 0  # of those in the heap
        self._order = itertools.count()
        self._thread: threading.Thread | None = None

    def call_after(
        self,
        seconds: float,
        action: Callable[..., object],
        period: float | None = None,
        *,
        at_close: bool = False,
        with_timer: bool = False,
    ) -> Timer:
        """Call `action()` after `seconds`, then every `period` seconds, on the timers' thread.

        With `at_close` it is called at the system's end, too, if it was not before. With
        `with_timer` it is called with the timer.
        """
        if period is not None:
            period = checks.seconds("a timer's period", period, zero=False)
        seconds = checks.seconds("a timer's delay", seconds)
        timer = Timer(self, action, period, at_close, with_timer)
        self.start()
        self._add(self.now() + seconds, timer)
        return timer

    def sleep(self, seconds: float) -> Future[None]:
        """Return a future that is done after `seconds`."""
        seconds = checks.seconds("a timer's delay", seconds)
        sleep = _Sleep()
        if not self.started:
            self.start()
        self._add(self.now() + seconds, sleep)
        return sleep

    def start(self) -> None:
        """Start the thread, if it is needed and does not run."""
        with self._lock:
            if self._thread is None and not self.closed:
                self._start()

    def see_to(self, due: float) -> None:
        """Look at the asks that were noted: one is due early, or there are many, or all is over."""
        with self._lock:
            if not self.closed:
                if due < self.wakes_at:
                    self.wakes_at = due
                    self._changed.notify()
                else:
                    self._set_timers_of_asks()
                return
        for ask in self.take():
            if ask.future is not None:
                self._fail(ask.future, ask.seconds)

    def _set_timers_of_asks(self) -> None:
        """Make timers for the asks that are not answered yet. The caller has the lock."""
        for ask in self.take():
            future = ask.future
            if future is None or future.done():
                continue
            timer = Timer(self, partial(self._fail, future, ask.seconds), None, at_close=True)
            if future._take_timer(timer):  # its completion waits for the lock to cancel that
                heapq.heappush(self._heap, (ask.due, next(self._order), timer))

    def _fail(self, future: Any, seconds: float) -> None:
        when = "before its system was stopped" if self.closed else f"in {seconds} s"
        asked = future._target  # None: it waits for something else, such as a channel
        what = "nothing happened" if asked is None else f"no answer from {asked._short_path}"
        future.set_exception(AskTimeout(f"{what} {when}"))

    def close(self) -> None:
        """Drop all timers and end the thread."""
        with self._lock:
            self.closed = True
            self._set_timers_of_asks()
            pending, self._heap = self._heap, []
            self._changed.notify()
        for _, _, timer in pending:
            if not isinstance(timer, _Sleep):
                action = self._claim(timer)
                if action is not None and timer.at_close:
                    self._act(action)

    def _cancel(self, timer: Timer) -> bool:
        with self._lock:
            if timer.is_over:
                return False
            timer.is_over = True
            timer.action = _nothing  # its objects need not live until it is due
            self._cancelled += 1
            if self._cancelled > _MANY and 2 * self._cancelled > len(self._heap):
                self._heap = [entry for entry in self._heap if not entry[2].is_over]
                heapq.heapify(self._heap)
                self._cancelled = 0
            return True

    def _add(self, due: float, timer: Timer | _Sleep) -> None:
        with self._lock:
            if self.closed:
                if isinstance(timer, Timer):
                    timer.is_over = True
                return
            heapq.heappush(self._heap, (due, next(self._order), timer))
            if self._heap[0][2] is timer:
                self._changed.notify()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"{self._name}-timers", daemon=True)
        thread.start()
        self._thread = thread
        self.started = True

    def _run(self) -> None:
        self.wake_on_time()
        while True:
            with self._lock:
                if self.closed:
                    return
                # An ask that is noted from here on, however late it is due, waits for the lock.
                ahead = self.fall_asleep(math.inf)
                self._set_timers_of_asks()
                now = self.now()
                due = self._heap[0][0] if self._heap else math.inf
                if now < due:
                    # Not later than it said it would: most asks to come then need not wake it.
                    until = min(ahead, due) if ahead > now else due
                    self.fall_asleep(until)
                    asleep = until - now
                    self._changed.wait(None if asleep == math.inf else min(asleep, 1e6))
                    continue
                taken = self._take_due(now)
            for due, _, timer in taken:
                self._fire(timer, due)
            del taken, timer  # they are over, and are not to live until the next is due

    def _take_due(self, now: float) -> list[tuple[float, int, Timer | _Sleep]]:
        """Take the first timer and the sleeps behind it that are due. The caller has the lock.

        Another timer stays in the heap until the one before it is over, which may cancel it.
        """
        taken = [heapq.heappop(self._heap)]
        while self._heap and self._heap[0][0] <= now and isinstance(self._heap[0][2], _Sleep):
            taken.append(heapq.heappop(self._heap))
        return taken

    def _claim(self, timer: Timer) -> Callable[..., object] | None:
        """Return the action of a timer that left the heap, or None if it was cancelled before."""
        with self._lock:
            if timer.is_over:
                self._cancelled = max(0, self._cancelled - 1)
                return None
            timer.is_over = timer.period is None or self.closed
            return timer.action

    def _act(self, action: Callable[..., object], *arguments: Any) -> None:
        try:
            action(*arguments)
        except BaseException as error:
            if comes_from_signal(error):
                raise
            log.error("a timer failed", exc_info=error)

    def _fire(self, timer: Timer | _Sleep, due: float) -> None:
        if isinstance(timer, _Sleep):
            self._act(timer.set_result, None)
            return
        action = self._claim(timer)
        if action is None:
            return
        self._act(action, *((timer,) if timer.takes_timer else ()))
        if timer.period is not None and not timer.is_over:
            # A late message stays late: no burst of messages to catch up.
            self._add(max(due + timer.period, self.now()), timer)


class ManualTimers(Timers):
    """Timers under a logical clock that moves only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.logical = self.started = True

    def now(self) -> float:
        """Return the logical time in seconds, from 0."""
        return self._now

    def see_to(self, due: float) -> None:
        """Give the asks that were noted their timers, as nobody waits for time to pass."""
        super().see_to(due)
        with self._lock:
            self._set_timers_of_asks()

    def _start(self) -> None:
        pass  # nobody waits for time to pass

    def next_due(self) -> float | None:
        """Return when the next timer is due, or None."""
        with self._lock:
            while self._heap and self._heap[0][2].is_over:
                heapq.heappop(self._heap)
                self._cancelled = max(0, self._cancelled - 1)
        return self._heap[0][0] if self._heap else None

    def advance_to(self, when: float) -> None:
        """Set the clock, and fire the timers due by then, in order of time."""
        self._now = max(self._now, when)
        while (due := self.next_due()) is not None and due <= self._now:
            _, _, timer = heapq.heappop(self._heap)
            self._fire(timer, due)


def _nothing() -> None:
    """Act as a cancelled timer."""
