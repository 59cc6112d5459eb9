"""The messages of a run's actors, and what becomes of those that the run's actor never saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard.dead_letters import DeadLetters
from callboard.nets.errors import NetEnded


@dataclass(slots=True, eq=False)
class Asked:
    """Somebody asked what comes of one record."""

    steps: list[Any] | None
    outputs: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    answer: Future[Any] = field(default_factory=Future)


class NetMessage:
    """A message of a run's actors, which means nothing to others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, slots=True)
class Ask(NetMessage):
    """Send a record. The answer comes when nothing more comes of it, and has what came."""

    record: Any
    traced: bool = False


@dataclass(slots=True, eq=False)
class SentRows(NetMessage):
    """Records to be sent into the net. The answer comes when all are in."""

    rows: list[Any]
    asked: Asked | None = None
    told: bool = False  # nobody waits for the answer
    sent: int = 0
    withdrawn: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Limit(NetMessage):
    """Records wait while so many outputs are not taken."""

    limit: int


@dataclass(frozen=True, slots=True, eq=False)
class Take(NetMessage):
    """Give outputs. The answer is a list, empty at the end, and comes when there are some.

    It is told, and not asked: a system is idle while somebody waits for outputs.
    """

    answer: Future[list[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class GiveBack(NetMessage):
    """These outputs were handed out, and not used."""

    outputs: list[Any]


class Finish(NetMessage):
    """Take no more records. The answer comes at the end, with the outputs that nobody took."""


@dataclass(frozen=True, slots=True)
class Withdraw(NetMessage):
    """The sender of a request takes it back.

    - `SentRows`: the records that are not in the net yet stay outside.
    - `Limit`: it no longer counts.
    - `Take`: the answer, if it is not given, is an empty list.
    - `Finish`: the sender has taken no outputs, and others may.
    """

    request: SentRows | Limit | Take | Finish


class Close(NetMessage):
    """Take no more records, and leave the outputs to those that take them."""


class Cancel(NetMessage):
    """Drop all records. The answer comes when that is done."""


class RunDropped(NetMessage):
    """Nobody uses the run any more: the conductor ends when nothing more can come."""


class Look(NetMessage):
    """The answer is the run's statistics."""


class GoOn(NetMessage):
    """Carry on with what is there: another actor had its turn."""


@dataclass(slots=True)
class CallOutput(NetMessage):
    """A box that runs elsewhere has put out values. The answer comes when they are in the net."""

    call: Any
    values: list[Any]
    attempt: int = 0
    waits: bool = False  # the sender waits until it is in the net
    answer: Future[None] | None = None


@dataclass(frozen=True, slots=True)
class CallEnded(NetMessage):
    """A box that runs elsewhere has ended a call. `error` is what it raised."""

    call: Any
    error: BaseException | None = None
    attempt: int = 0
    seconds: float = field(default=0.0, repr=False)  # of the try; traces of a seed are the same


@dataclass(frozen=True, slots=True)
class RetryCall(NetMessage):
    """Call a box again."""

    call: Any


@dataclass(frozen=True, slots=True)
class CallTimeout(NetMessage):
    """A call has taken too long."""

    call: Any
    attempt: int


class Sweep(NetMessage):
    """Look which records have been too long in unfinished synchrocells."""


def settle_unread(dead_letters: DeadLetters, conductor: ActorRef[Any]) -> None:
    """Handle messages that a run's actor has left when it stopped, or never saw.

    Their records become dead letters, and those who wait for outputs get an error.
    """
    dead_letters.expect_wake_ups(conductor, NetMessage, partial(_settle, dead_letters))


def _settle(dead_letters: DeadLetters, message: NetMessage, conductor: ActorRef[Any]) -> None:
    match message:
        case SentRows(rows, told=True):
            for row in rows:
                dead_letters.post(row, conductor, None, "stopped", _ended())
        case GiveBack(outputs):
            for output in outputs:
                dead_letters.post(output, conductor, None, "untaken")
        case Take(answer):
            answer.set_exception(_ended())


def _ended() -> NetEnded:
    return NetEnded("the run has ended")
