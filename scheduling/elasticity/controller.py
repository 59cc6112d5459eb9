"""The controller of the level of workers: a thread that measures periods and asks a strategy."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from callboard.core.errors import CallboardError
from callboard.core.log import log
from callboard.core.tracebacks import current_frames, format_stack
from callboard.scheduling.elasticity.decision import Decision
from callboard.scheduling.elasticity.measurement import Measurement
from callboard.scheduling.elasticity.processors import Processors
from callboard.scheduling.elasticity.team_level import (
    LevelChange,
    LeveledTeam,
    LeveledWorker,
    LevelStatistics,
)
from callboard.scheduling.elasticity.work_counts import WorkCounts

# The number of changes of the level that are remembered.
MOST_CHANGES = 1000
PYTHON_ONLY = (
    "With an interpreter lock one worker at a time runs Python, and there are no native actors or "
    "operators yet."
)


class Strategy(Protocol):
    """Chooses levels by measurements. One thread calls it, once for each period."""

    def decide(self, measurement: Measurement) -> Decision:
        """Return the next period's level, at least `least` and at most `most`."""
        ...


class Controller:
    """Measures a team, and sets its level, once in each period.

    `runs` names the work of a worker that does not come back from a user's code. The thread ends
    with the team.
    """

    def __init__(
        self,
        team: LeveledTeam,
        strategy: Strategy,
        period: float,
        least: int,
        runs: Callable[[LeveledWorker], str],
        name: str,
    ) -> None:
        self._team = team
        self._strategy = strategy
        self._period = period
        self._least = least
        self._runs = runs
        self._name = name
        self._processors = Processors()
        self._changes: deque[LevelChange] = deque(maxlen=MOST_CHANGES)
        self._reason = "Nothing has been measured yet."
        self._began = time.monotonic()
        self._counts = WorkCounts()
        self._told: dict[LeveledWorker, tuple[int, int]] = {}
        self._ended = threading.Event()

    def begin(self) -> None:
        """Start the thread. Raises CallboardError if no more threads can be started."""
        self._counts.take(self._team)
        thread = threading.Thread(target=self._run, name=f"{self._name}-level", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise CallboardError(f"the level of workers has no thread: {error}") from error

    def end(self) -> None:
        """Tell the thread to end."""
        self._ended.set()

    def statistics(self) -> LevelStatistics:
        """Return the level and its changes."""
        most = len(self._team.workers)
        changes = tuple(self._changes)
        return LevelStatistics(self._team.level, self._least, most, self._reason, changes)

    def look(self) -> None:
        """Measure the work since the last look, and set the level. On one thread at a time."""
        team, before = self._team, self._team.level
        if team.awaits_need:
            self._counts.take(team)
            self._reason = PYTHON_ONLY
            return
        decision = self._strategy.decide(self._measure())
        self._reason = decision.reason
        if decision.level == before:
            return
        begin = time.perf_counter()
        try:
            team.set_level(decision.level)
        except CallboardError as error:
            self._reason = f"{decision.level} workers were needed, but {error}."
            log.warning(
                "the level of workers does not change", system=self._name, reason=self._reason
            )
            return
        took = time.perf_counter() - begin
        self._counts.add_new_workers(team)
        change = LevelChange(
            time.monotonic() - self._began, before, decision.level, decision.reason, took
        )
        self._changes.append(change)
        log.info(
            "the level of workers changes",
            system=self._name,
            before=before,
            level=change.level,
            reason=change.reason,
            seconds=took,
        )

    def _run(self) -> None:
        while not self._ended.wait(self._period):
            try:
                self.look()
            except Exception as error:
                self._reason = f"The level stays as it is: the strategy failed with {error!r}."
                log.exception(
                    "the level of workers does not change: its strategy failed", system=self._name
                )
                return

    def _measure(self) -> Measurement:
        level = self._team.level
        counted = self._counts.take(self._team)
        seconds = counted.seconds
        machine, process = self._processors.read()
        return Measurement(
            level=level,
            seconds=seconds,
            throughput=(counted.messages + counted.rows) / seconds,
            busy=min(counted.busy / seconds, float(level)),
            starved=min(counted.starved, counted.busy) / seconds,
            machine=machine,
            process=process,
            waiting=counted.waiting,
            waiting_cost=counted.backlog / counted.waiting if counted.waiting else 1.0,
            held_back=min(1.0, counted.held_back / seconds),
            stages=tuple(counted.stages),
            stuck=tuple(map(self._tell, self._team.lagging)),
        )

    def _tell(self, worker: LeveledWorker) -> str:
        """Describe a worker that should be suspended and still runs; log its stack once."""
        runs = f"{worker.name}, in {self._runs(worker)}"
        now = worker.current_actor, worker.dispatches
        if self._told.get(worker) != now:
            self._told[worker] = now
            thread = worker.thread
            frame = None if thread is None else current_frames().get(thread.ident or 0)
            log.warning(
                "a worker cannot be suspended before it returns from its actor",
                system=self._name,
                worker=worker.name,
                actor=self._runs(worker),
                exception="".join(format_stack(frame)) if frame is not None else "",
            )
        return runs
