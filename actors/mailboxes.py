"""Kinds of mailboxes to choose from at spawn. The default is unbounded, first in first out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from callboard._inside.sending.overflow import OVERFLOWS
from callboard._inside.sending.priority_order import PriorityIntake
from callboard._inside.sending.state import Intake
from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.core.text import safe_repr


def _check(capacity: int, overflow: str, timeout: float) -> None:
    checks.whole("a mailbox's capacity", capacity, error=ConfigError)
    checks.one_of("a mailbox's overflow", overflow, OVERFLOWS, error=ConfigError)
    checks.seconds("a mailbox's timeout", timeout, error=ConfigError)


class Mailbox:
    """The base of mailbox types. Each type also says how it is bounded, if it is."""

    __slots__ = ()
    __dir__ = public_names

    def _make_intake(self) -> Intake | None:
        """Return an object that brings one actor's messages into this kind's order; None keeps
        theirs.
        """
        return None


@dataclass(frozen=True, slots=True)
class BoundedMailbox(Mailbox):
    """A mailbox of at most `capacity` messages.

    Args:
        capacity: The most messages that wait.
        overflow: What a sender does when the mailbox is full:

            - `block`: wait for room, then raise MailboxFull after `timeout`. An outside thread
              sleeps; a worker runs other ready actors.
            - `help`: like `block`, but a worker first runs the receiver itself, so that its queue
              shrinks (Schneider and Wu 2017, section 4.1: reSchedule).
            - `drop_newest`, `drop_oldest`: drop this message, or the one that has waited longest.
              It is counted, and becomes a dead letter. On a free-threaded interpreter `drop_oldest`
              exceeds the capacity while a thread is interrupted in the middle of its send.
            - `fail`: raise MailboxFull.
            - `throttle`: wait at most `timeout`, then send anyway; the capacity is a threshold (Das
              et al. 2009, section 4.3.3).
        timeout: The longest wait in seconds.

    An actor on the event loop does not wait in tell(). Its message is stored separately, and the
    actor waits at its next `await`, or at the end of its current message. MailboxFull is raised
    there, too.

    A worker does not sleep for room while it has another actor to run, and wakes up when one gets a
    message. Nested waits might never end. So if an actor that runs while another waits for room
    finds a mailbox full, its worker runs only the receiver. If it cannot, the message exceeds the
    capacity, and the sender waits afterwards: until the receiver has room, for 10 ms, or for
    `timeout`, whichever ends first. If its worker has no other actor to run, the sender waits that
    long beforehand, too; if `timeout` has passed by then, the policy applies.
    """

    capacity: int
    overflow: str = "block"
    timeout: float = 30.0

    def __post_init__(self) -> None:
        _check(self.capacity, self.overflow, self.timeout)


@dataclass(frozen=True, slots=True)
class PriorityMailbox(Mailbox):
    """A mailbox from which the message with the smallest `key(message)` is taken first.

    Messages with equal keys keep their order. A key that is NaN, or a tuple or list with NaN in it,
    comes after all others. Messages of the runtime (`Terminated`, the messages of timers,
    `DeadLetter`) come first if `key` raises for them.

    Args:
        key: Runs on the worker, when a message is moved into the order. If it raises, or returns a
            value that cannot be compared, handling that message has failed.
        capacity: The most messages that wait; None for no limit.
        overflow: As for BoundedMailbox, but `drop_oldest` is not possible.
        timeout: As for BoundedMailbox.
    """

    key: Callable[[Any], Any]
    capacity: int | None = None
    overflow: str = "block"
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not callable(self.key):
            raise ConfigError(
                f"a PriorityMailbox expects a function as key, got {safe_repr(self.key)}"
            )
        _check(1 if self.capacity is None else self.capacity, self.overflow, self.timeout)
        if self.overflow == "drop_oldest":
            raise ConfigError("a PriorityMailbox cannot drop_oldest: its oldest is not its next")

    def _make_intake(self) -> Intake:
        """Return a heap."""
        return PriorityIntake(self.key)
