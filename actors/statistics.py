"""Monitoring of a system: its statistics, and its workers' logs."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.log import log as log_event
from callboard.core.monitoring.private_files import private
from callboard.diagnosis import actors_and_paths, all_actors, at_work
from callboard.scheduling.monitor import (
    ActorStatistics,
    ClassStatistics,
    EndStatistics,
    Statistics,
    WorkerLog,
    WorkerStatistics,
)
from callboard.scheduling.worker import WorkerThread

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime


# How many ended actors' paths are remembered for the logs, at the least half of it.
MOST_PATHS = 100_000
# Where the numbers of operators begin, beyond those of actors; how many names are remembered.
FIRST_OPERATOR = 2**40
MOST_OPERATORS = 10_000


def collect(runtime: Runtime) -> Statistics:
    """Read the measurements of every live actor and every worker. Disturbs none of them."""
    team = runtime.team
    running = at_work(runtime)
    actors = []
    ends: list[EndStatistics] = []
    in_work: dict[WorkerThread, tuple[str, float]] = {}
    for ref, path in actors_and_paths(runtime):
        worker, seconds = running.get(ref.number, (None, None))
        if worker is not None and seconds is not None:
            in_work[worker] = path, seconds
        if ref.worker is not None:
            actors.append(figures_of_actor(ref, path, seconds))
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
    )


def figures_of_actor(ref: ActorRef[Any], path: str, in_message: float | None) -> ActorStatistics:
    """Read the measurements of an actor that has a worker."""
    worker, messages, busy = ref.worker, ref.messages, ref.busy_ns / 1e9
    assert worker is not None
    timed = worker.is_timed
    created = ref.created_ns / 1e9 if ref.created_ns else None
    alive = time.monotonic() - created if created is not None else None
    return ActorStatistics(
        path=path,
        worker=worker.name,
        messages=messages,
        dispatches=ref.dispatches,
        total=busy if timed else None,
        mean=busy / messages if timed and messages else None,
        queue=ref.queue_length,
        peak=ref.queue_peak,
        dropped=ref.dropped,
        waits_for=ref.waits_for,
        in_message=in_message,
        state=ref.state,
        created=created,
        alive=alive,
        idle=max(alive - busy, 0.0) if alive is not None else None,
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


def _free_name(stem: str, taken: set[str]) -> str:
    """Return the name of a log, with a number if there is one of that name."""
    name = f"{stem}.log"
    numbers = itertools.count(2)
    while name in taken:
        name = f"{stem}-{next(numbers)}.log"
    return name


def _one_word(path: str) -> bytes:
    """Return a path as a log has it: a name may have any characters, and a record is one line."""
    if not path.isprintable() or " " in path:
        path = "".join(c if c.isprintable() and c != " " else "_" for c in path)
    return path.encode()


class Logs:
    """The logs of one system's workers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._paths: dict[int, bytes] = {}
        self.classes: dict[int, str] = {}
        """The names of the classes of the same actors."""
        self._most_paths = MOST_PATHS
        self._lock = threading.Lock()
        self._readers: tuple[Callable[[WorkerThread], object], ...] = ()
        self._operators = range(FIRST_OPERATOR, FIRST_OPERATOR)  # whose names are remembered
        self._folder: Path | None = None
        self._written: dict[WorkerThread, tuple[str, WorkerLog]] = {}  # the file's name, the log

    def note(self, ref: ActorRef[Any]) -> None:
        """Remember a new actor's path: its records may be read when it has ended."""
        paths = self._paths
        paths[ref.number] = _one_word(ref._short_path)
        self.classes[ref.number] = ref.actor_class.__qualname__
        if len(paths) > self._most_paths:
            live = {actor.number for actor in all_actors(self._runtime)}
            latest = ref.number - MOST_PATHS // 2
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
                self._paths[number] = _one_word(name)
            for number in self._operators[:-MOST_OPERATORS]:
                del self._paths[number]
            self._operators = self._operators[-MOST_OPERATORS:]

    def add_reader(self, reader: Callable[[WorkerThread], object]) -> None:
        """Call `reader(worker)` each time before records of a worker are overwritten."""
        with self._lock:
            self._readers = (*(one for one in self._readers if one != reader), reader)
            self._runtime.team.write_log = self._hand_over

    def remove_reader(self, reader: Callable[[WorkerThread], object]) -> None:
        """Call `reader` no more."""
        with self._lock:
            self._readers = tuple(one for one in self._readers if one != reader)
            if not self._readers:
                self._runtime.team.write_log = None

    def _hand_over(self, worker: WorkerThread) -> None:
        for reader in self._readers:
            reader(worker)

    def lines(self, worker: int) -> list[str]:
        """Return the latest lines of the worker with the index `worker`."""
        workers = self._runtime.team.workers
        if worker not in range(len(workers)):
            raise ConfigError(f"there is no worker {worker!r}; there are 0 to {len(workers) - 1}")
        return WorkerLog(workers[worker]).read(self._paths).decode().splitlines()

    def write(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write each worker's lines to a file of its own in `directory`, from now on until the end.

        All that was recorded so far is there when this returns.
        """
        folder = Path(directory)
        team = self._runtime.team
        with self._lock:
            logs = self._logs_of(team.everyone)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            written = [_append(folder / name, log, self._paths) for name, log in logs]
            self._folder = folder
        self.add_reader(self._write_one)
        return written

    def finish(self) -> None:
        """Write what is left when the workers have ended."""
        if self._folder is not None:
            for worker in self._runtime.team.everyone:
                self._write_one(worker)

    def _write_one(self, worker: WorkerThread) -> None:
        """Write what a worker has recorded. It calls this itself before its ring is full."""
        with self._lock:
            if self._folder is None:
                return
            name, log = self._log_of(worker)
            try:
                _append(self._folder / name, log, self._paths)
            except OSError as error:  # such as a full disk: once is enough
                self._folder = None
                log_event.error("a log could not be written; no more is", file=name, error=error)

    def _logs_of(self, workers: list[WorkerThread]) -> list[tuple[str, WorkerLog]]:
        """Return each worker's log with its file's name; forget the workers that have ended."""
        before = self._written
        self._written = {worker: before[worker] for worker in workers if worker in before}
        return [self._log_of(worker) for worker in workers]

    def _log_of(self, worker: WorkerThread) -> tuple[str, WorkerLog]:
        if worker not in self._written:
            taken = {name for name, _ in self._written.values()}
            name = _free_name(worker.name.replace("/", "_"), taken)
            self._written[worker] = (name, WorkerLog(worker))
        return self._written[worker]


def _append(file: Path, log: WorkerLog, paths: dict[int, bytes]) -> Path:
    with open(file, "ab", 0, opener=private) as opened:
        text = log.read(paths)
        while text:
            text = text[opened.write(text) :]
    return file
