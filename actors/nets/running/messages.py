"""The messages of a run's actors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from callboard._inside.answers.future import Future


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


@dataclass(frozen=True, slots=True)
class Withdraw(NetMessage):
    """Take back what is not in the net yet. The answer is how many records are."""

    rows: SentRows


@dataclass(frozen=True, slots=True, eq=False)
class Limit(NetMessage):
    """Records wait while so many outputs are not taken."""

    limit: int


@dataclass(frozen=True, slots=True)
class Unlimit(NetMessage):
    """Nobody takes outputs by this limit any more."""

    limit: Limit


@dataclass(frozen=True, slots=True, eq=False)
class Take(NetMessage):
    """Give outputs. The answer is a list, empty at the end, and comes when there are some.

    It is told, and not asked: a system is idle while somebody waits for outputs.
    """

    answer: Future[list[Any]]


@dataclass(frozen=True, slots=True)
class Untake(NetMessage):
    """The taker waits no more. The answer to `take`, if it is not given, is an empty list."""

    take: Take


@dataclass(frozen=True, slots=True, eq=False)
class GiveBack(NetMessage):
    """These outputs were handed out, and not used."""

    outputs: list[Any]


class Finish(NetMessage):
    """Take no more records. The answer comes at the end, with the outputs that nobody took."""


@dataclass(frozen=True, slots=True)
class Unfinish(NetMessage):
    """The finisher waits no more, and has taken nothing."""

    finish: Finish


class Close(NetMessage):
    """Take no more records, and leave the outputs to those that take them."""


class Cancel(NetMessage):
    """Drop all records. The answer comes when that is done."""


class Abandoned(NetMessage):
    """The run was dropped by its user: the conductor ends with it."""


class Look(NetMessage):
    """The answer is the run's statistics."""


class GoOn(NetMessage):
    """Carry on with what is there: another actor had its turn."""


@dataclass(slots=True)
class Given(NetMessage):
    """A box that runs elsewhere has put out values. The answer comes when they are in the net."""

    call: Any
    values: list[Any]
    attempt: int = 0
    waits: bool = False  # the sender waits until it is in the net
    answer: Future[None] | None = None


@dataclass(frozen=True, slots=True)
class Ended(NetMessage):
    """A box that runs elsewhere has ended a call. `error` is what it raised."""

    call: Any
    error: BaseException | None = None
    attempt: int = 0
    seconds: float = field(default=0.0, repr=False)  # of the try; traces of a seed are the same


@dataclass(frozen=True, slots=True)
class AskAgain(NetMessage):
    """Call a box again."""

    call: Any


@dataclass(frozen=True, slots=True)
class Expired(NetMessage):
    """A call has taken too long."""

    call: Any
    attempt: int


class Sweep(NetMessage):
    """Look which records have been too long in unfinished synchrocells."""


@dataclass(slots=True)
class NetStatistics:
    """How a run does.

    - `hops`: how often a record came to an entity.
    - `sent`, `put_out`: records that went into the net, and outputs that were taken.
    - `in_cells`: synchrocells that have some of their records. `elsewhere`: records at boxes that
      run on the event loop or on threads. `skipped`: records that errors made dead letters.
    - `calls`: for each box that runs elsewhere, by its path, how many calls of it are at work.
    - `places`: for each place in the net, by its path: the `records` that came, the `entities`
      that there are, and how many were ever `made`. A box also has the records that are `waiting`
      for a call, the `calls` that have ended, with their `tries` and `failures`, and the seconds
      that all tries took (`busy`), one (`mean`), and the longest (`worst`). Elsewhere a try counts
      from its beginning to its end.
    """

    hops: int = 0
    sent: int = 0
    put_out: int = 0
    in_cells: int = 0
    elsewhere: int = 0
    skipped: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)
