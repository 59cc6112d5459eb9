"""Circuit breakers, which refuse asks after too many have failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.asks.errors import CircuitOpen
from callboard.asks.policy import AskPolicy, called, kinds_of
from callboard.core import checks

if TYPE_CHECKING:
    from callboard.system import ActorSystem


class CircuitBreaker(AskPolicy):
    """Makes asks fail immediately while their target is broken.

    It starts "closed": all asks go through. After `failures` failures in a row it is "open": all
    asks fail with CircuitOpen, and are not sent. After `reset_after` seconds it is "half-open": one
    ask goes through. If that is answered, the circuit closes; otherwise it opens again.
    """

    def __init__(
        self,
        failures: int = 5,
        reset_after: float = 30.0,
        *,
        on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        system: ActorSystem | None = None,
    ) -> None:
        """Make a closed circuit breaker.

        Args:
            failures: The number of failures in a row that open it.
            reset_after: The number of seconds for which it stays open.
            on: The errors that count as failures; any other shows that the target works. A
                cancelled ask does not count.
            system: The system whose clock is used; by default that of the asked actor.

        Raises ValueError, TypeError.
        """
        super().__init__(system)
        self.failures = checks.whole("failures", failures)
        self.reset_after = checks.seconds("reset_after", reset_after)
        self.on = kinds_of("on", on)
        self._lock = Lock()
        self._failed = 0  # in a row
        self._open_until: float | None = None
        self._period = 0  # counts how often it opened or closed: an ask is one of its period
        self._is_tried = False  # an ask goes through the half-open circuit
        self._now: Callable[[], float] = lambda: 0.0

    @property
    def state(self) -> str:
        """The state: `closed`, `open` or `half-open`."""
        with self._lock:
            if self._open_until is None:
                return "closed"
            return "open" if self._now() < self._open_until else "half-open"

    def call(self, ask: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return the future of `ask(*args, **kwargs)`, or one that has failed with CircuitOpen."""
        now = self._timers(ask, args, kwargs).now
        with self._lock:
            self._now = now
            if self._open_until is not None:
                left = self._open_until - now()
                if left > 0 or self._is_tried:
                    return _refused(self._failed, left)
                self._is_tried = True
            period = self._period
        future = called(ask, args, kwargs)
        future.add_done_callback(partial(self._note, period))
        return future

    def _note(self, period: int, future: Future[Any]) -> None:
        error = future.exception()
        with self._lock:
            if period != self._period:
                return  # it was asked before the circuit opened, or closed
            is_trial, self._is_tried = self._is_tried, False
            if future.cancelled():
                return
            if error is None or not isinstance(error, self.on):
                self._failed = 0
                self._open_until = None
                self._period += is_trial
                return
            self._failed += 1
            if is_trial or self._failed >= self.failures:
                self._open_until = self._now() + self.reset_after
                self._period += 1

    def __repr__(self) -> str:
        return f"<CircuitBreaker {self.state}, {self.failures} failures, {self.reset_after:g} s>"


def _refused(failed: int, left: float) -> Future[Any]:
    then = f"the next may ask in {left:.3g} s" if left > 0 else "one ask tries it just now"
    future: Future[Any] = Future()
    future.set_exception(CircuitOpen(f"{failed} asks have failed one after the other; {then}"))
    return future
