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
from callboard.core.text import safe_repr


def _check(capacity: int, overflow: str, timeout: float) -> None:
    checks.whole("a mailbox's capacity", capacity, error=ConfigError)
    checks.one_of("a mailbox's overflow", overflow, OVERFLOWS, error=ConfigError)
    checks.seconds("a mailbox's timeout", timeout, error=ConfigError)


class Mailbox:
    """The base of the kinds of mailboxes. Each kind also says how it is bounded, if it is."""

    __slots__ = ()

    def make_intake(self) -> Intake | None:
        """Return an object that brings one actor's messages into this kind's order; None keeps
        theirs.
        """
        return None


@dataclass(frozen=True, slots=True)
class BoundedMailbox(Mailbox):
    """A mailbox of at most `capacity` messages.

    `overflow` is the policy for a sender when it is full:

    - `block`: wait, `timeout` seconds at most, then raise MailboxFull. An outside thread sleeps; a
      worker runs other ready actors meanwhile.
    - `help`: like `block`, but a worker runs the receiver itself first, so that its queue shrinks
      (Schneider and Wu 2017, section 4.1: reSchedule).
    - `drop_newest`, `drop_oldest`: drop this message, or the one that waits longest. Both are
      counted, and are dead letters. On a free-threaded interpreter `drop_oldest` exceeds the
      capacity while a thread is interrupted in the middle of its send.
    - `fail`: raise MailboxFull.
    - `throttle`: wait `timeout` seconds at most, then send all the same; the capacity is a
      threshold (Das et al. 2009, section 4.3.3).

    An actor on the event loop does not wait in tell(): it goes no further than its next `await`, or
    the end of its message, where MailboxFull is raised, too. Its messages wait beside it.

    A worker does not sleep for room while it has another actor to run, and wakes up for one that
    gets a message. A wait within a wait might never end. So when an actor runs while another waits
    for room, and finds a mailbox full, its worker runs the receiver and nobody else. If the worker
    cannot, the message exceeds the capacity, and the sender waits afterwards: it runs again when
    the receiver has room, or 10 ms later, or `timeout`, whichever is first. If its worker has no
    other actor to run, the sender waits so long before, too; where `timeout` is over then, the
    policy holds as above.
    """

    capacity: int
    overflow: str = "block"
    timeout: float = 30.0

    def __post_init__(self) -> None:
        _check(self.capacity, self.overflow, self.timeout)


@dataclass(frozen=True, slots=True)
class PriorityMailbox(Mailbox):
    """A mailbox from which the message with the least `key(message)` is taken first.

    Messages with equal keys keep their order. A key that is NaN, or a tuple or list with NaN in it,
    comes after all others. `key` runs on the worker, when the message is moved into the order; if
    it raises, or returns a value that cannot be compared, handling that message has failed.
    Messages of the runtime (`Terminated`, the messages of timers, `DeadLetter`) come first where
    `key` raises for them. With a `capacity` it is bounded as well; `drop_oldest` is not possible
    here.
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

    def make_intake(self) -> Intake:
        """Return a heap."""
        return PriorityIntake(self.key)
