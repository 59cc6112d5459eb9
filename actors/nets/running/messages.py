"""The messages of a run's actors, and the fate of those that its coordinator never handled."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard.dead_letters import DeadLetters
from callboard.nets.errors import NetEnded


@dataclass(slots=True, eq=False)
class PendingAsk:
    """An ask whose record is in the net: its outputs so far, and its answer."""

    steps: list[Any] | None
    outputs: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    answer: Future[Any] = field(default_factory=Future)


class NetMessage:
    """A message of a run's actors. Actors of users never get one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, slots=True)
class Ask(NetMessage):
    """Send a record. The answer is its outputs, and comes when there can be no more."""

    record: Any
    traced: bool = False


@dataclass(slots=True, eq=False)
class SentRows(NetMessage):
    """Records to be sent into the net. The answer comes when all are in."""

    rows: list[Any]
    asked: PendingAsk | None = None
    told: bool = False  # the sender does not wait for the answer
    sent: int = 0
    withdrawn: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Limit(NetMessage):
    """Hold back records while this number of outputs has not been taken."""

    limit: int


@dataclass(frozen=True, slots=True, eq=False)
class Take(NetMessage):
    """Give outputs. The answer is a list, empty at the end, and comes when there are some.

    It is told, and not asked: a system is idle while somebody waits for outputs.
    """

    answer: Future[list[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class GiveBack(NetMessage):
    """Return outputs that were handed out but not used."""

    outputs: list[Any]


class Finish(NetMessage):
    """Take no more records. The answer comes at the end, with the outputs that were not taken."""


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
    """Take no more records. The outputs are for `Take`."""


class Cancel(NetMessage):
    """Drop all records. The answer comes when that is done."""


class RunDropped(NetMessage):
    """The run's handle is gone: the coordinator ends when nothing more can come."""


class Look(NetMessage):
    """Return the run's statistics as the answer."""


class GoOn(NetMessage):
    """Continue the work, after other actors of the worker have run."""


@dataclass(slots=True)
class CallOutput(NetMessage):
    """A box that runs elsewhere has emitted values. The answer comes when they are in the net."""

    call: Any
    values: list[Any]
    attempt: int = 0
    waits: bool = False  # the sender waits until it is in the net
    answer: Future[None] | None = None


@dataclass(frozen=True, slots=True)
class CallEnded(NetMessage):
    """A box that runs elsewhere has ended a call. `error` is its exception, if it raised one."""

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
    """A call has exceeded its timeout."""

    call: Any
    attempt: int


@dataclass(frozen=True, slots=True)
class BatchAnswered(NetMessage):
    """A process has answered, or has ended."""

    batch: Any
    answer: Future[Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class BatchCalled(NetMessage):
    """A worker has called a box for a batch. The times are in nanoseconds."""

    batch: Any
    outputs: list[Any] = field(repr=False)
    errors: dict[int, BaseException] = field(repr=False)
    spent: int = field(repr=False)
    worst: int = field(repr=False)
    processor: int = field(repr=False)


class Sweep(NetMessage):
    """Remove records that have been in unfinished synchrocells for too long."""


def settle_unread(dead_letters: DeadLetters, coordinator: ActorRef[Any]) -> None:
    """Handle messages that a run's coordinator did not handle before it stopped.

    Their records become dead letters, and waits for outputs get an error.
    """
    dead_letters.expect_wake_ups(coordinator, NetMessage, partial(_settle, dead_letters))


def _settle(dead_letters: DeadLetters, message: NetMessage, coordinator: ActorRef[Any]) -> None:
    match message:
        case SentRows(rows, told=True):
            for row in rows:
                dead_letters.post(row, coordinator, None, "stopped", _ended())
        case GiveBack(outputs):
            for output in outputs:
                dead_letters.post(output, coordinator, None, "uncollected")
        case Take(answer):
            answer.set_exception(_ended())


def _ended() -> NetEnded:
    return NetEnded("the run has ended")
