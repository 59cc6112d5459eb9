"""Asks that begin after a delay, or are made again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard._inside.receiving.loop_task import as_event_loop
from callboard.asks.policy import called, system_of
from callboard.core.errors import SystemClosed
from callboard.timers import Timer, Timers


class DelayedAsk(Future[Any]):
    """The outcome of calls, each of which may begin at a timer."""

    def __init__(
        self,
        timers: Timers,
        ask: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        note: Callable[[DelayedAsk, Future[Any]], object],
    ) -> None:
        """Have `note(self, future)` called when a call is done."""
        super().__init__()
        self.timers = timers
        self.calls = 0
        self._call = partial(called, ask, args, kwargs)
        self._note = note
        self._system_of = system_of(ask, args)
        self._lock = Lock()
        self._current: Timer | Future[Any] | None = None

    def begin(self) -> None:
        """Call now, in this thread."""
        with self._lock:
            self.calls += 1
        future = self._call()
        self._current = future
        if self.done():  # it was cancelled in between
            future.cancel()
        future.add_done_callback(partial(self._note, self))

    def begin_in(self, seconds: float) -> None:
        """Call when `seconds` have passed, on the timers' thread."""
        calls = self.calls
        timer = self.timers.call_after(seconds, self.begin_there, at_close=True)
        with self._lock:
            if self.calls == calls:  # else it was due at once
                self._current = timer
        if self.done():
            timer.cancel()
        elif self.timers.closed:
            self.fail_closed()

    def begin_there(self) -> None:
        """Call now, on the timers' thread, unless it is done or the system has stopped."""
        if self.timers.closed:
            self.fail_closed()
        elif not self.done():
            as_event_loop(self.begin)  # a full mailbox must not hold timers up

    def fail_closed(self) -> None:
        """Fail, because the system has stopped."""
        self.set_exception(SystemClosed("the system was stopped before the ask's next turn"))

    def follow(self, future: Future[Any]) -> None:
        """Be done as `future` is."""
        error = future.exception()
        if error is None:
            self.set_result(future.result())
        else:
            self.set_exception(error)

    def cancel(self) -> bool:
        """Cancel what is in work, too. False if it was complete already."""
        if not super().cancel():
            return False
        current = self._current
        if current is not None:
            current.cancel()
        return True

    @property
    def _ends_unwanted(self) -> bool:
        return True

    @property
    def _system(self) -> Any:
        return self._system_of

    @property
    def _wait_cause(self) -> WaitCause | None:
        current = self._current
        if isinstance(current, Future):
            return current._wait_cause
        return WaitCause(WaitTarget.DELAYED_ASK)
