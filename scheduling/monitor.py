"""Statistics of a system, as values and as text.

The levels of monitoring are those of LPEL (Prokesch 2011, section 5.4.3), and one for mailboxes:
`off`; `times`, the execution time and the outcome of each dispatch; `mailboxes`, which adds waiting
messages; `channels`, which adds each dispatch's use of channels; `workers`, which adds the workers'
waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields

from callboard.core.markup import paragraph, table
from callboard.core.monitoring.time_distribution import NO_TIMES, TimeDistribution
from callboard.core.text import time_in_words
from callboard.scheduling.elasticity.team_level import LevelStatistics


@dataclass(frozen=True, slots=True)
class ActorStatistics:
    """The statistics of one live actor. Times are in seconds; None: not measured."""

    path: str
    worker: str
    """The name of its worker."""
    messages: int
    """The number of handled messages."""
    dispatches: int
    total: float | None
    """The time in its dispatches."""
    mean: float | None
    """The time per message; None also before the first one."""
    queue: int | None
    """The number of waiting messages."""
    peak: int | None
    """The largest number of waiting messages so far."""
    dropped: int
    """The number of messages that its mailbox dropped or refused."""
    waits_for: str | None
    """The thing that it waits for, such as "a message" or "room in channel 3", if any."""
    in_message: float | None = None
    """The time since a worker began its present message, if there is one."""
    created: float | None = None
    """The time of its spawn, by the monotonic clock."""
    alive: float | None = None
    """The time since its spawn."""
    idle: float | None = None
    """The part of `alive` outside its dispatches."""


@dataclass(frozen=True, slots=True)
class ClassStatistics:
    """The times of the actors of one class, including ended ones. In seconds; None: not measured.

    A message's processing time is that of its dispatch, divided by the dispatch's messages. One
    message in 16 is stamped for its time in the mailbox.
    """

    name: str
    """The class's `__qualname__`; classes with the same name are counted together."""
    messages: int
    """The number of processing times."""
    mean: float | None
    """The mean processing time."""
    p50: float | None
    """The median of processing times."""
    p99: float | None
    """The processing time that one message in a hundred exceeds."""
    mailbox_p50: float | None
    """The median time in the mailbox."""
    mailbox_p99: float | None
    """The time in the mailbox that one message in a hundred exceeds."""
    processing: TimeDistribution = NO_TIMES
    in_mailbox: TimeDistribution = NO_TIMES

    @classmethod
    def of(
        cls, name: str, processing: TimeDistribution, in_mailbox: TimeDistribution
    ) -> ClassStatistics:
        """Return the entry of a class with these distributions."""
        return cls(
            name=name,
            messages=processing.count,
            mean=processing.mean,
            p50=processing.p50,
            p99=processing.p99,
            mailbox_p50=in_mailbox.p50,
            mailbox_p99=in_mailbox.p99,
            processing=processing,
            in_mailbox=in_mailbox,
        )


@dataclass(frozen=True, slots=True)
class EndStatistics:
    """The statistics of one end of a channel that belongs to a live actor."""

    channel: int
    """The channel's number."""
    mode: str
    """`w`, a sender; `r`, a receiver."""
    state: str
    """O, not used yet; I, in use; C, closed."""
    moved: int | None
    """The number of values that this actor moved through this end; None: not counted."""
    waiting: int
    """The number of values in the channel."""
    capacity: int
    actor: str
    """The path of the end's actor."""


@dataclass(frozen=True, slots=True)
class WorkerStatistics:
    """The statistics of one worker. Times are in seconds; None: not measured."""

    name: str
    dispatches: int
    busy: float | None
    """The time in dispatches."""
    idle: float
    """The idle time, including a wait in progress."""
    waits: int
    """The number of times that it was idle."""
    actor: str | None = None
    """The path of the actor that it runs at present, if any."""
    in_message: float | None = None
    """The time since it began that actor's present message."""


@dataclass(frozen=True, slots=True)
class ProcessStatistics:
    """The statistics of one worker process, or process of a pool, and of those that it replaced."""

    name: str
    pid: int | None
    """The number of the process; None: there is none at present."""
    done: int
    """The number of rounds, or messages, that were handled."""
    waiting: int
    """The number of those that were sent, and are not known to be handled."""
    busy: float
    """The processor time, in seconds."""
    sent: int
    """The bytes that were sent to it."""
    received: int
    """The bytes that came back."""
    ends: int
    """The number of processes that have ended here without being told to."""
    started: bool = True
    """Whether one has ever answered."""


@dataclass(frozen=True, slots=True, repr=False)
class Statistics:
    """The result of `ActorSystem.statistics()`.

    Its text has a table of each kind, and a line for each worker that is in the middle of a
    message.

    It has the live actors, parents before their children. Figures that were read while actors ran
    may be of slightly different moments.
    """

    monitoring: str
    """The level of monitoring."""
    actors: tuple[ActorStatistics, ...]
    workers: tuple[WorkerStatistics, ...]
    unmet: tuple[str, ...] = ()
    """The entries of the configuration, such as `actors.cart`, that no spawn has used."""
    channels: tuple[EndStatistics, ...] = ()
    """The actors' ends of channels, those of one channel together."""
    level: LevelStatistics | None = None
    """The number of workers that run, and the reason, in an elastic system."""
    classes: tuple[ClassStatistics, ...] = ()
    """The times of each class of actors; empty if monitoring is off."""
    processes: tuple[ProcessStatistics, ...] = ()
    """The worker processes, and those of pools."""

    def of(self, path: str) -> ActorStatistics:
        """Return the entry of the actor at `path`. Raises KeyError."""
        for actor in self.actors:
            if actor.path == path:
                return actor
        raise KeyError(path)

    def __repr__(self) -> str:
        return (
            f"<Statistics, monitoring {self.monitoring}: actors {len(self.actors)}, "
            f"workers {len(self.workers)}, ends of channels {len(self.channels)}>"
        )

    def _repr_html_(self) -> str:
        """Return the text as tables, for notebooks."""
        tables = [
            ("worker", WorkerStatistics, self.workers),
            ("actor", ActorStatistics, self.actors),
        ]
        if self.processes:
            tables.append(("process", ProcessStatistics, self.processes))
        if self.classes:
            tables.append(("class", ClassStatistics, self.classes))
        if self.channels:
            tables.append(("channel", EndStatistics, self.channels))
        return "".join(
            [
                *(_html_table(*one) for one in tables),
                *map(paragraph, [] if self.level is None else str(self.level).splitlines()),
                *map(paragraph, self._in_work()),
            ]
        )

    def __str__(self) -> str:
        workers = _table("worker", WorkerStatistics, self.workers, texts=1)
        actors = _table("actor", ActorStatistics, self.actors, texts=2)
        processes = (
            ("", *_table("process", ProcessStatistics, self.processes, 1)) if self.processes else ()
        )
        unmet = ["", f"no spawn yet for {', '.join(self.unmet)}"] if self.unmet else []
        ends = ("", *_table("channel", EndStatistics, self.channels, 0)) if self.channels else ()
        level = ("", str(self.level)) if self.level is not None else ()
        classes = ("", *_table("class", ClassStatistics, self.classes, 1)) if self.classes else ()
        tables = (*workers, *level, *processes, "", *actors, *classes, *ends)
        return "\n".join((*tables, *self._in_work(), *unmet))

    def _in_work(self) -> Iterator[str]:
        for worker in self.workers:
            if worker.actor is not None:
                spent = _text(worker.in_message)
                yield f"{worker.name} has been in a message of {worker.actor} for {spent}"


# The columns to the right of figures that hold words.
WORDS = ("waits_for", "actor")


def _text(value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return time_in_words(value)


def _cells(what: str, kind: type, entries: Sequence[object]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns, and the rows, the header first."""
    names = [column.name for column in fields(kind) if column.default is MISSING]
    rows = [[_text(getattr(entry, name)) for name in names] for entry in entries]
    return names, [[what, *names[1:]], *rows]


def _html_table(what: str, kind: type, entries: Sequence[object]) -> str:
    names, (header, *rows) = _cells(what, kind, entries)
    words = (i for i, name in enumerate(names) if i == 0 or name in ("worker", *WORDS))
    return table(header, rows, words)


def _table(what: str, kind: type, entries: Sequence[object], texts: int) -> Iterator[str]:
    """Yield a table's lines: words are left-aligned, as are the first `texts` columns."""
    names, cells = _cells(what, kind, entries)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = (
            cell.ljust(width) if i < texts or names[i] in WORDS else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(line).rstrip()
