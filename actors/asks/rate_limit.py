"""Rate limits of asks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.asks.delayed import DelayedAsk
from callboard.asks.errors import TooManyAsks
from callboard.asks.policy import AskPolicy, called
from callboard.core import checks
from callboard.timers import Timer, Timers

if TYPE_CHECKING:
    from callboard.system import ActorSystem

_EARLY = 1e-6  # how many seconds before its time a turn may be, as numbers are rounded


class RateLimit(AskPolicy):
    """Delays asks, so that no more than a given number begin in each second.

    This is the generic cell rate algorithm (ITU-T I.371), a token bucket without a thread that
    fills it.
    """

    def __init__(
        self,
        per_second: float,
        burst: int = 1,
        *,
        waiting: int | None = None,
        system: ActorSystem | None = None,
    ) -> None:
        """Make a rate limit.

        Args:
            per_second: The number of asks that may begin in each second.
            burst: The number that may begin at once after a rest.
            waiting: The most asks that may wait for their turn; None for any number.
            system: The system whose clock is used; by default that of the asked actor.

        Raises ValueError, TypeError.
        """
        super().__init__(system)
        self.per_second = checks.finite("per_second", per_second)
        if self.per_second <= 0:
            raise ValueError(f"per_second must be more than 0, got {per_second!r}")
        self.burst = checks.whole("burst", burst)
        self.waiting = None if waiting is None else checks.whole("waiting", waiting, 0)
        self._lock = RLock()
        self._next: float | None = None  # when the next ask would be on time without a burst
        self._interval = 1.0 / self.per_second
        self._waiting: OrderedDict[DelayedAsk, None] = OrderedDict()
        self._timer: Timer | None = None  # of the turn of the first that waits

    def call(self, ask: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of `ask(*args, **kwargs)`, which is called in its turn.

        If the call need not wait, it is made in this thread; otherwise on the timers' thread, where
        the message has no sender. Turns are in the order of the calls. A waiting call that is
        cancelled gives its turn to the next. A `timeout` of the ask begins with the turn. The
        future fails with TooManyAsks if too many calls wait, and with SystemClosed if the system
        stops before its turn.
        """
        timers = self._timers(ask, args, kwargs)
        with self._lock:
            now = timers.now()
            at_once = not self._waiting and self._left(now) <= 0
            if at_once:
                self._next = now if self._next is None else max(self._next, now)
                self._next += self._interval
        if at_once:
            return called(ask, args, kwargs)
        asked = DelayedAsk(timers, ask, args, kwargs, DelayedAsk.follow)
        with self._lock:
            if self.waiting is None or len(self._waiting) < self.waiting:
                self._waiting[asked] = None
                failed = self._set_timer()
            else:
                refusal = TooManyAsks(f"{self.waiting} asks wait for their turn already")
                asked.set_exception(refusal)
                failed = []
        if timers.closed:
            asked.fail_closed()
        asked.add_done_callback(self._forget)
        for future in failed:
            future.fail_closed()
        return asked

    def _left(self, now: float) -> float:
        """Return in how many seconds the next turn is."""
        return 0.0 if self._next is None else self._next - (self.burst - 1) * self._interval - now

    def _set_timer(self) -> list[DelayedAsk]:
        """Have the first that waits get its turn. The caller has the lock.

        Return those in front whose systems have stopped. They have left.
        """
        failed: list[DelayedAsk] = []
        while self._waiting and self._timer is None:
            timers = next(iter(self._waiting)).timers
            left = max(self._left(timers.now()), 0.0)
            timer = timers.call_after(left, partial(self._take_turn, timers), at_close=True)
            if timers.closed:
                failed.append(self._waiting.popitem(last=False)[0])
            else:
                self._timer = timer
        return failed

    def _take_turn(self, timers: Timers) -> None:
        """Begin the first that waits, if it is time. On the timers' thread."""
        asked: DelayedAsk | None = None
        with self._lock:
            self._timer = None
            if self._waiting and self._next is not None and self._left(timers.now()) <= _EARLY:
                asked = self._waiting.popitem(last=False)[0]
                self._next += self._interval
            failed = self._set_timer()
        for future in failed:
            future.fail_closed()
        if asked is not None:
            asked.begin_there()

    def _forget(self, asked: Future[Any]) -> None:
        """Give the place and the turn of an ask that is done to the next."""
        with self._lock:
            self._waiting.pop(asked, None)  # type: ignore[call-overload]
            if not self._waiting and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def __repr__(self) -> str:
        return f"<RateLimit {self.per_second:g} asks in a second, burst {self.burst}>"
