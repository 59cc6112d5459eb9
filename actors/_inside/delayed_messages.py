"""Messages that are delivered later: those of timers, and the outcomes of futures."""

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
from callboard.recipient import is_recipient, tell_without_waiting

if TYPE_CHECKING:
    from callboard.timers import Timer


def teller(what: str, to: Any, variables: contextvars.Context | None) -> Callable[..., object]:
    """Return a function that tells a recipient, in a thread that may not wait. Raises TypeError."""
    if isinstance(to, ActorRef):
        # A full mailbox does not hold others up: these messages may exceed its capacity.
        return lambda message, timer=None: to._tell_past_capacity(message, variables, timer)
    if is_recipient(to):
        return partial(tell_without_waiting, to)
    raise TypeError(f"{what} expected a ref or another recipient, got {safe_repr(to)}")


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
        raise TypeError(f"coalesce=True works only for timers of actors, got {safe_repr(to)}")
    if not to._keeps_messages:
        raise ValueError(f"coalesce=True expects a mailbox that drops nothing, got that of {to!r}")
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
        raise TypeError(f"pipe() expects a function as `wrap`, got {safe_repr(wrap)}")

    def deliver(done: Future[Any]) -> None:
        try:
            answer = done.result()
            message = answer if wrap is None else wrap(answer)
        except BaseException as error:
            message = PipeFailed(error)
        tell(message)

    checked("pipe()", future).add_done_callback(deliver)


def start_timer(
    runtime: Runtime, seconds: float, period: float | None, message: Any, to: Any, coalesce: bool
) -> Timer:
    """Have a timer of the system tell `message` after `seconds`, and then in each `period`."""
    runtime.refuse_fork()
    if runtime.closed:
        raise SystemClosed(f"the system {runtime.name!r} was stopped: it has no timers")
    action = timed_tell(to, message, contextvars.copy_context(), coalesce)
    return runtime.timers.call_after(seconds, action, period)
