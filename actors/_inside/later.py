"""Messages that are told later: by a timer, or when a future is done."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.combined import checked
from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime
from callboard.core import checks
from callboard.core.errors import SystemClosed
from callboard.core.text import safe_repr
from callboard.messages import PipeFailed
from callboard.recipient import Recipient, is_recipient, tell_without_waiting

if TYPE_CHECKING:
    from callboard.timers import Timer


def teller(what: str, to: Any, variables: contextvars.Context | None) -> Callable[..., object]:
    """Return a function that tells a recipient, in a thread that may not wait. Raises TypeError."""
    if isinstance(to, ActorRef):
        # A full mailbox does not hold others up: these messages may exceed its capacity.
        return lambda message, timer=None: to._tell_past_capacity(message, variables, timer)
    if is_recipient(to):
        return partial(tell_without_waiting, to)
    raise TypeError(f"{what} goes to a ref or another recipient, not {safe_repr(to)}")


def timed_tell(
    to: Any, message: Any, variables: contextvars.Context | None, coalesce: bool
) -> Callable[..., object]:
    """Return the function by which a timer tells `message`. Raises TypeError, ValueError.

    It may be called with the timer, if that is the actor's own and has a key.
    """
    tell = teller("a timer's message", to, variables)
    if not checks.flag("coalesce", coalesce):
        return partial(tell, message)
    if not isinstance(to, ActorRef):
        raise TypeError(f"coalesce=True is for the timers of actors, not of {safe_repr(to)}")
    if not to._keeps_messages:
        raise ValueError(f"coalesce=True wants a mailbox that drops nothing, not that of {to!r}")
    return Coalesced(to, partial(tell, message))


class Coalesced:
    """Tells an actor, unless the message that it told last still waits or is in work."""

    def __init__(self, to: ActorRef[Any], tell: Callable[..., object]) -> None:
        self._to = to
        self._tell = tell
        self._handled: Future[None] | None = None

    def __call__(self, *timer: Timer) -> None:
        """Tick. On the timers' thread."""
        if self._handled is None or self._handled.done():
            self._tell(*timer)
            self._handled = self._to._fence()


def tell_outcome(
    future: Any,
    to: Any,
    wrap: Callable[[Any], Any] | None,
    variables: contextvars.Context | None,
) -> None:
    """Tell a recipient the answer of `future` when it is there, or PipeFailed. Raises TypeError."""
    tell = teller("the outcome of a future", to, variables)
    if wrap is not None and not callable(wrap):
        raise TypeError(f"pipe() wants a function as `wrap`, not {safe_repr(wrap)}")

    def deliver(done: Future[Any]) -> None:
        try:
            answer = done.result()
            message = answer if wrap is None else wrap(answer)
        except BaseException as error:
            message = PipeFailed(error)
        tell(message)

    checked("pipe()", future).add_done_callback(deliver)


class Scheduled:
    """The part of ActorSystem that tells later."""

    _runtime: Runtime

    def after(self, seconds: float, message: Any, *, to: Recipient[Any]) -> Timer:
        """Send `message` to an actor or another Recipient once, after `seconds`.

        Return a timer with `cancel()`.

        In any thread. The timer ends with the system. Raises SystemClosed, ForkedSystem.
        """
        return self._start_timer(seconds, None, message, to, False)

    def every(
        self, seconds: float, message: Any, *, to: Recipient[Any], coalesce: bool = False
    ) -> Timer:
        """Send `message` to an actor or another Recipient every `seconds`.

        Return a timer with `cancel()`. With `coalesce` no message is sent while the last one waits
        or is in work. In any thread. The timer ends with the system. Raises SystemClosed,
        ForkedSystem.
        """
        return self._start_timer(seconds, seconds, message, to, coalesce)

    def _start_timer(
        self, seconds: float, period: float | None, message: Any, to: Any, coalesce: bool
    ) -> Timer:
        runtime = self._runtime
        runtime.refuse_fork()
        if runtime.closed:
            raise SystemClosed(f"the system {runtime.name!r} was stopped: it has no timers")
        action = timed_tell(to, message, contextvars.copy_context(), coalesce)
        return runtime.timers.call_after(seconds, action, period)
