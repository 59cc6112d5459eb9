"""Messages that the runtime itself sends to actors and subscribers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callboard.core.text import safe_repr

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard.failures import FailureReport


@dataclass(frozen=True, slots=True)
class Terminated:
    """Sent to those who watch `ref`: it has stopped and will handle nothing more.

    `cause` is the report of the failure that ended it, if one did; it has no say in comparisons.
    """

    ref: ActorRef[Any]
    cause: FailureReport | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class DeadLetter:
    """A message that was told and not handled, and why.

    `reason` says why. `stopped`: the actor had stopped, or did before the message's turn; `error`
    says why if a failure ended it. `system stopped`: all actors had. `failed`: handling it raised
    `error`. `dropped_newest` and `dropped_oldest`: a full mailbox dropped it. `refused`: a full
    mailbox raised `error`, which a native sender cannot be told. For a stream's rows it is
    `skipped` (the message is a Failure), `late` or `unpaired`.
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
