"""Asking no faster than allowed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.asks.delayed import DelayedAsk
from callboard.asks.errors import TooManyAsks
from callboard.asks.policy import AskPolicy, called
from callboard.core import checks

if TYPE_CHECKING:
    from callboard.system import ActorSystem


class RateLimit(AskPolicy):
    """Let asks wait for their turn, so that there are no more in a second than allowed.

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
        """Let through `per_second` asks in a second, and after a rest `burst` of them at once.

        `waiting` is the most that may wait for their turn; None: any number. `system` has the
        clock: see AskPolicy. Raises ValueError, TypeError.
        """
        super().__init__(system)
        self.per_second = checks.finite("per_second", per_second)
        if self.per_second <= 0:
            raise ValueError(f"per_second is more than 0, not {per_second!r}")
        self.burst = checks.whole("burst", burst)
        self.waiting = None if waiting is None else checks.whole("waiting", waiting, 0)
        self._lock = Lock()
        self._next: float | None = None  # when the next ask would be on time without a burst
        self._interval = 1.0 / self.per_second

    def call(self, ask: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of `ask(*args, **kwargs)`, which is called in its turn.

        That is in this thread if it need not wait, else on the timers' thread, as a message of no
        sender. The turns are in the order of the calls. A cancelled call's turn is not given to
        another. The future fails with TooManyAsks if too many wait, and with SystemClosed if the
        system stops before its turn.
        """
        timers = self._timers(ask, args)
        tolerance = (self.burst - 1) * self._interval
        with self._lock:
            now = timers.now()
            due = now if self._next is None else max(self._next, now)
            wait = due - tolerance - now
            ahead = wait / self._interval  # so many asks wait, but for a fraction
            refused = self.waiting is not None and wait > 0 and ahead > self.waiting + 1e-9
            if not refused:
                self._next = due + self._interval
        if refused:
            future: Future[Any] = Future()
            future.set_exception(TooManyAsks(f"{self.waiting} asks wait for their turn already"))
            return future
        if wait <= 0:
            return called(ask, args, kwargs)
        asked = DelayedAsk(timers, ask, args, kwargs, DelayedAsk.follow)
        asked.begin_in(wait)
        return asked

    def __repr__(self) -> str:
        return f"<RateLimit {self.per_second:g} asks in a second, burst {self.burst}>"
