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

    `reason` is that of `ActorEnd`. If a failure was the reason, `cause` is its report, and `error`
    the same as an exception. Only `ref` counts in comparisons.
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
    """Sent instead of an answer by `self.pipe()` if the future failed with `error`."""

    error: BaseException


@dataclass(frozen=True, slots=True, repr=False)
class DeadLetter:
    """A message that was told but not handled, and the reason.

    `reason` is one of:

    - `stopped`: the actor had stopped, or stopped before it handled the message. If a failure ended
      it, that is `error`.
    - `system stopped`: the actor stopped with its system.
    - `failed`: handling the message raised `error`.
    - `dropped_newest`, `dropped_oldest`: a full mailbox dropped it.
    - `refused`: a full mailbox raised `error`, and the sender is native, a `Topic`, or in another
      process.
    - `lost`: a process of a pool ended, and it is unknown whether it had handled the message.
    - `cancelled`: the asker cancelled the ask before or while it was handled.
    - `skipped` (the message is a FailedRow), `late`, `unpaired`: a row of a stream.
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
