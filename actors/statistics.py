"""The statistics of a system, and the actors and classes in its workers' records."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from callboard.diagnosis import actors_and_paths, all_actors, at_work
from callboard.scheduling.monitor import (
    ClassStatistics,
    EndStatistics,
    Statistics,
    WorkerStatistics,
)
from callboard.scheduling.tracing.formats import one_word
from callboard.scheduling.worker import WorkerThread

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime


# How many ended actors' paths are remembered for traces, at the least half of it.
MOST_PATHS = 100_000
# Where the numbers of operators begin, beyond those of actors; how many names are remembered.
FIRST_OPERATOR = 2**40
MOST_OPERATORS = 10_000


def collect(runtime: Runtime) -> Statistics:
    """Read the measurements of every live actor and every worker. Disturbs none of them."""
    team, system = runtime.team, runtime.system
    running = at_work(runtime)
    actors = []
    ends: list[EndStatistics] = []
    in_work: dict[WorkerThread, tuple[str, float]] = {}
    for ref, path in actors_and_paths(runtime):
        worker, seconds = running.get(ref._number, (None, None))
        if worker is not None and seconds is not None:
            in_work[worker] = path, seconds
        if ref.worker is not None:
            actors.append(ref._statistics(path, seconds))
            ends.extend(EndStatistics(*figures, path) for figures in ref._ends)
    return Statistics(
        monitoring=team.monitoring,
        actors=tuple(actors),
        workers=tuple(
            figures_of_worker(worker, *in_work.get(worker, (None, None)))
            for worker in team.everyone
        ),
        unmet=runtime.config.unmet,
        channels=tuple(sorted(ends, key=lambda end: (end.channel, end.mode, end.actor))),
        level=None if team.controller is None else team.controller.statistics(),
        classes=tuple(
            ClassStatistics.of(name, *times.read())
            for name, times in sorted(runtime.class_times.items())
        ),
        processes=() if system is None else tuple(system._observer.processes()),
    )


def figures_of_worker(
    worker: WorkerThread, actor: str | None, in_message: float | None
) -> WorkerStatistics:
    """Read the measurements of a worker, which runs `actor`."""
    return WorkerStatistics(
        name=worker.name,
        dispatches=worker.dispatches,
        busy=worker.busy_ns / 1e9 if worker.is_timed else None,
        idle=worker.waited_ns / 1e9,
        waits=worker.waits,
        actor=actor,
        in_message=in_message,
    )


class Records:
    """The names of what the records of a system's workers are about, and those that read them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._paths: dict[int, bytes] = {}
        self.classes: dict[int, str] = {}
        """The names of the classes of the same actors."""
        self._most_paths = MOST_PATHS
        self._lock = threading.Lock()
        self._readers: tuple[Callable[[WorkerThread], object], ...] = ()
        self._operators = range(FIRST_OPERATOR, FIRST_OPERATOR)  # whose names are remembered

    def note(self, ref: ActorRef[Any]) -> None:
        """Remember a new actor's path: its records may be read when it has ended."""
        paths = self._paths
        paths[ref._number] = one_word(ref._short_path).encode()
        self.classes[ref._number] = ref.actor_class.__qualname__
        if len(paths) > self._most_paths:
            live = {actor._number for actor in all_actors(self._runtime)}
            latest = ref._number - MOST_PATHS // 2
            for number in list(paths):
                if number <= latest and number not in live:
                    paths.pop(number, None)
                    self.classes.pop(number, None)
            self._most_paths = len(paths) + MOST_PATHS

    @property
    def paths(self) -> dict[int, bytes]:
        """The paths of actors and the names of operators, by the numbers that records have."""
        return self._paths

    def note_operators(self, number_them: Callable[[int], list[str]]) -> None:
        """Remember the names of a graph's operators, to which it gives numbers from one on."""
        with self._lock:
            names = number_them(self._operators.stop)
            self._operators = range(self._operators.start, self._operators.stop + len(names))
            for number, name in zip(self._operators[-len(names) :], names, strict=True):
                self._paths[number] = one_word(name).encode()
            for number in self._operators[:-MOST_OPERATORS]:
                del self._paths[number]
            self._operators = self._operators[-MOST_OPERATORS:]

    def add_reader(self, reader: Callable[[WorkerThread], object]) -> None:
        """Call `reader(worker)` each time before records of a worker are overwritten."""
        with self._lock:
            self._readers = (*(one for one in self._readers if one != reader), reader)
            self._runtime.team.hand_over_records = self._hand_over

    def remove_reader(self, reader: Callable[[WorkerThread], object]) -> None:
        """Call `reader` no more."""
        with self._lock:
            self._readers = tuple(one for one in self._readers if one != reader)
            if not self._readers:
                self._runtime.team.hand_over_records = None

    def _hand_over(self, worker: WorkerThread) -> None:
        for reader in self._readers:
            reader(worker)
