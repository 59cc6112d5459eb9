"""Receivers of messages: a ref of an actor, here or elsewhere, or an object that stands for several
of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from callboard._inside.answers.future import Future
from callboard.core.log import log
from callboard.core.text import safe_repr

M = TypeVar("M", contravariant=True)

TOLD: Future[None] = Future()
"""The future of messages that were sent at once."""
TOLD.set_result(None)


@runtime_checkable
class Recipient(Protocol[M]):
    """Receives messages: an ActorRef, a RemoteRef, a ShardedRef, or any object with these methods.

    Sinks of streams, targets of timers, and entry points of servers and of Spark's tasks may be any
    recipient. It may also have `atell` and `atell_many`, which return a future without waiting;
    they are called where a wait would block others.
    """

    def tell(self, message: M, /) -> None:
        """Send `message`."""

    def tell_many(self, messages: Iterable[M], /) -> None:
        """Send all of `messages`, in order."""

    def ask(self, message: M, /, timeout: float | None = None) -> Future[Any]:
        """Send `message`, and return a future of the answer."""


def is_recipient(what: object) -> TypeGuard[Recipient[Any]]:
    """Tell whether something takes messages. A class does not, though it has the methods."""
    return isinstance(what, Recipient) and not isinstance(what, type)


def checked_recipients(what: str, refs: Any) -> tuple[Recipient[Any], ...]:
    """Return the recipients that `what` got. Raises TypeError; ValueError if there are none."""
    try:
        found = tuple(refs)
    except TypeError:
        raise TypeError(f"{what} expects several refs, got {safe_repr(refs)}") from None
    for ref in found:
        if not is_recipient(ref):
            raise TypeError(f"{what} expects refs, got {safe_repr(ref)}")
    if not found:
        raise ValueError(f"{what} expects at least one ref")
    return found


def path_of(recipient: object) -> str:
    """Return the text to call a recipient by: its path, its name, or its repr."""
    for name in ("path", "name"):
        found = getattr(recipient, name, None)
        if isinstance(found, str) and found:
            return found
    return safe_repr(recipient)


def atell_to(recipient: Recipient[Any], message: Any) -> Future[None]:
    """Send `message` by `atell` where the recipient has it, else at once. Return its future."""
    atell = getattr(recipient, "atell", None)
    if atell is None:
        recipient.tell(message)
        return TOLD
    told: Future[None] = atell(message)
    return told


def atell_many_to(recipient: Recipient[Any], messages: list[Any]) -> Future[None]:
    """Send all of `messages`, as atell_to()."""
    atell_many = getattr(recipient, "atell_many", None)
    if atell_many is None:
        recipient.tell_many(messages)
        return TOLD
    told: Future[None] = atell_many(messages)
    return told


def tell_without_waiting(recipient: Recipient[Any], message: Any) -> None:
    """Send `message` from a thread that others wait for. A later failure is logged."""
    atell = getattr(recipient, "atell", None)
    if atell is None:
        recipient.tell(message)
        return

    def note(told: Future[None]) -> None:
        error = told.exception()
        if error is not None:
            log.error("a message could not be sent", recipient=path_of(recipient), error=error)

    atell(message).add_done_callback(note)


def together(futures: list[Future[None]]) -> Future[None]:
    """Return a future that is done when all are, and fails as the first of them that does."""
    if len(futures) == 1:
        return futures[0]
    together: Future[None] = Future()
    left = len(futures) or 1
    lock = Lock()

    def count(_: object) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left > 0:
                return
        error = next((error for each in futures if (error := each.exception()) is not None), None)
        if error is None:
            together.set_result(None)
        else:
            together.set_exception(error)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        count(None)
    return together
