"""Monitoring of a system: its statistics, and its workers' logs."""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.diagnosis import actors_and_paths, all_actors
from callboard.scheduling.monitor import (
    ActorStatistics,
    Statistics,
    WorkerLog,
    WorkerStatistics,
)
from callboard.scheduling.worker import WorkerThread

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime


def collect(runtime: Runtime) -> Statistics:
    """Read the measurements of every live actor and every worker. Disturbs none of them."""
    team = runtime.team
    running: dict[int, tuple[WorkerThread, float]] = {}  # by the actors' numbers
    for one in team.everyone:
        number, since = one.current_actor, one.clock_read_at
        if number and not one.is_idle:
            running[number] = one, max(0, time.monotonic_ns() - since) / 1e9
    actors = []
    in_work: dict[WorkerThread, tuple[str, float]] = {}
    for ref, path in actors_and_paths(runtime):
        worker, seconds = running.get(ref.number, (None, None))
        if worker is not None and seconds is not None:
            in_work[worker] = path, seconds
        if ref.worker is not None:
            actors.append(_actor(ref, path, seconds))
    return Statistics(
        monitoring=team.monitoring,
        actors=tuple(actors),
        workers=tuple(
            _worker(worker, *in_work.get(worker, (None, None))) for worker in team.everyone
        ),
        unmet=runtime.config.unmet,
    )


def _actor(ref: ActorRef[Any], path: str, in_message: float | None) -> ActorStatistics:
    worker, messages, busy = ref.worker, ref.messages, ref.busy_ns / 1e9
    assert worker is not None
    timed = worker.is_timed
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
    )


def _worker(worker: WorkerThread, actor: str | None, in_message: float | None) -> WorkerStatistics:
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


class Logs:
    """The logs of one system's workers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._paths: dict[int, str] = {}
        self._lock = threading.Lock()
        self._written: dict[WorkerThread, tuple[str, WorkerLog]] = {}  # the file's name, the log

    def lines(self, worker: int) -> list[str]:
        """Return the latest lines of the worker with the index `worker`."""
        workers = self._runtime.team.workers
        if worker not in range(len(workers)):
            raise ConfigError(f"there is no worker {worker!r}; there are 0 to {len(workers) - 1}")
        self._learn()
        return WorkerLog(workers[worker]).read(self._path_of)

    def write(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Append each worker's lines since the last call to a file of its own in `directory`."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        self._learn()
        written = []
        with self._lock:
            for name, log in self._logs_of(self._runtime.team.everyone):
                path = folder / name
                with path.open("a", encoding="utf-8") as file:
                    file.writelines(f"{line}\n" for line in log.read(self._path_of))
                written.append(path)
        return written

    def _logs_of(self, workers: list[WorkerThread]) -> list[tuple[str, WorkerLog]]:
        """Return each worker's log with its file's name; forget the workers that have ended."""
        before = self._written
        self._written = {worker: before[worker] for worker in workers if worker in before}
        names = {name for name, _ in self._written.values()}
        for worker in workers:
            if worker not in self._written:
                name = _free_name(worker.name.replace("/", "_"), names)
                names.add(name)
                self._written[worker] = (name, WorkerLog(worker))
        return [self._written[worker] for worker in workers]

    def _learn(self) -> None:
        """Remember the live actors' paths, for when they have ended and their records are read."""
        for ref in all_actors(self._runtime):
            if ref.number not in self._paths:
                self._paths[ref.number] = ref._short_path

    def _path_of(self, number: int) -> str:
        return self._paths.get(number, "(ended)")
