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


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a record. The answer comes when nothing more comes of it, and has what came."""

    record: Any
    traced: bool = False


@dataclass(slots=True, eq=False)
class SentRows:
    """Records to be sent into the net. The answer comes when all are in."""

    rows: list[Any]
    asked: Asked | None = None
    told: bool = False  # nobody waits for the answer
    sent: int = 0
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take back what is not in the net yet. The answer is how many records are."""

    rows: SentRows


@dataclass(frozen=True, slots=True)
class Limit:
    """Records wait while so many outputs are not taken."""

    limit: int


class Take:
    """Give outputs. The answer is a list, empty at the end, and comes when there are some."""


@dataclass(frozen=True, slots=True)
class Untake:
    """The taker waits no more. The answer to `take`, if it is not given, is an empty list."""

    take: Take


@dataclass(frozen=True, slots=True)
class GiveBack:
    """These outputs were handed out, and not used."""

    outputs: list[Any]


class Finish:
    """Take no more records. The answer comes at the end, with the outputs that nobody took."""


class Close:
    """Take no more records, and leave the outputs to those that take them."""


class Cancel:
    """Drop all records. The answer comes when that is done."""


class Abandoned:
    """The run was dropped by its user: the conductor ends with it."""


class Look:
    """The answer is the run's statistics."""


class GoOn:
    """Carry on with what is there: another actor had its turn."""


@dataclass(slots=True)
class Given:
    """A box that runs elsewhere has put out something. The answer comes when that is in the net."""

    call: Any
    value: Any
    attempt: int = 0
    waits: bool = False  # the sender waits until it is in the net
    answer: Future[None] | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A box that runs elsewhere has ended a call. `error` is what it raised."""

    call: Any
    error: BaseException | None = None
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """Call a box again."""

    call: Any


@dataclass(frozen=True, slots=True)
class Expired:
    """A call has taken too long."""

    call: Any
    attempt: int


class Sweep:
    """Look which records have been too long in unfinished synchrocells."""


@dataclass(slots=True)
class NetStatistics:
    """How a run does.

    - `hops`: how often a record came to an entity.
    - `sent`, `put_out`: records that went into the net, and outputs that were taken.
    - `in_cells`: synchrocells that have some of their records. `elsewhere`: records at boxes that
      run on the event loop or on threads. `skipped`: records that errors made dead letters.
    - `places`: for each place in the net, by its path: the `records` that came, the `entities`
      that there are, and how many were ever `made`.
    """

    hops: int = 0
    sent: int = 0
    put_out: int = 0
    in_cells: int = 0
    elsewhere: int = 0
    skipped: int = 0
    places: dict[str, Any] = field(default_factory=dict)
