"""Messages that the runtime itself sends to actors and subscribers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.core.text import safe_repr

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard.core.errors import ActorFailed
    from callboard.failures import EndReason, FailureReport


@dataclass(frozen=True, slots=True)
class Terminated:
    """Sent to the actors that watch `ref`: it has stopped and handles no more messages.

    `reason` says how, in the words of `ActorEnd`. `cause` is the report of the failure that was the
    reason, if one was, and `error` is that as an exception. Only `ref` counts in comparisons.
    """

    ref: ActorRef[Any]
    cause: FailureReport | None = field(default=None, compare=False)
    reason: EndReason = field(default="stopped", compare=False)

    @property
    def error(self) -> ActorFailed | None:
        """The failure that ended it, as an exception whose text is the traceback; or None."""
        return None if self.cause is None else self.cause.as_error()


@dataclass(frozen=True, slots=True)
class PipeFailed:
    """Sent in the place of an answer by `self.pipe()`: the future failed with `error`."""

    error: BaseException


@dataclass(frozen=True, slots=True, repr=False)
class DeadLetter:
    """A message that was told and not handled, and why.

    `reason` says why. `stopped`: the actor had stopped, or did before the message's turn; `error`
    says why if a failure ended it. `system stopped`: it stopped with its system. `failed`: handling
    it raised `error`. `dropped_newest` and `dropped_oldest`: a full mailbox dropped it. `refused`:
    a full mailbox raised `error`, and the sender is native, a `Topic`, or in another process.
    `lost`: a process of a pool ended, and whether it had handled the message is unknown.
    `cancelled`: its asker cancelled the ask before it was handled, or in the middle. For a stream's
    rows it is `skipped` (the message is a FailedRow), `late` or `unpaired`.
    """

    message: Any
    recipient: ActorRef[Any]
    sender: ActorRef[Any] | None
    reason: str
    error: BaseException | None = None

    def __repr__(self) -> str:
        return (
            f"DeadLetter(message={safe_repr(self.message)}, recipient={self.recipient!r}, "
            f"sender={self.sender!r}, reason={self.reason!r}, error={safe_repr(self.error)})"
        )
