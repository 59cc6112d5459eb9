"""Waiting for a run: callers on a worker help, and other threads sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import WeakMethod

from callboard.core.threads.blocking import runs_event_loop
from callboard.scheduling.worker import on_worker
from callboard.streams.errors import RunEnded, RunError, RunTimeout
from callboard.streams.programs.program import Program
from callboard.streams.running.build import Deployment
from callboard.streams.running.call_lock import LockHold
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.lifecycle import HELP, Lifecycle
from callboard.streams.running.stall_detector import StallDetector, what_it_waits_for
from callboard.system import ActorSystem

LOOK = 0.1  # seconds: how often a waiting caller looks whether the system still runs
_FIRST_ROUNDS = 64  # that are measured
_PATIENCE = 0.25  # seconds to wait for some of them; a worker process starts meanwhile


class Outlook(NamedTuple):
    """The results that a run may still produce, seen at one moment."""

    done: int
    """How many rounds had left the graph."""
    is_idle: bool
    """No round was on its way."""
    is_over: bool
    """And none will be: all that it gives is there."""


class Waiting:
    """Waits for rounds and locks of one run, in any thread."""

    def __init__(
        self,
        system: ActorSystem,
        flow: GraphFlow,
        deployment: Deployment,
        programs: Sequence[Program],
        life: Lifecycle,
        end_unfinished: WeakMethod[Callable[[], None]],
    ) -> None:
        self._system = system
        self._flow = flow
        self._deployment = deployment
        self._programs = programs
        self._life = life
        self._end_unfinished = end_unfinished
        workers = system._runtime.team.workers
        self.stalls = StallDetector(flow, workers, deployment.shared_pools())

    def acquire(self, hold: LockHold, deadline: float | None) -> bool:
        """Acquire a lock, whose holder may wait for lanes. False: the deadline passed."""
        while not hold.acquire():
            if hold.is_inner:  # as where that call runs a system whose actor makes this one
                raise RunError(
                    f"this thread is already sending to {self._life!r} or ending it: a nested call "
                    "would wait for itself"
                )
            if deadline is not None and time.monotonic() >= deadline:
                return False
            runs_here = self._system._is_run_here
            if runs_here:  # what another thread's call waits for; the clock stands still
                self._system._run_until(hold.is_free, 0.0)
            elif self._help():
                continue
            if hold.acquire(HELP if runs_here or on_worker() else LOOK):
                break
        return True

    def _help(self) -> bool:
        """Work for a slice, on a worker's thread, which otherwise would wait for its own work."""
        return on_worker() and self._flow.help(self._deployment.pools_here())

    def until(self, rounds: int, deadline: float | None = None) -> bool:
        """Wait until this number of rounds is done. False: the deadline passed."""
        while self._flow.done < rounds:
            if self._life.ended:  # by a cancel() that did not wait for operators; no lane goes on
                raise self._life.why_ended(f"{self._life!r} was cancelled")
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self.for_a_moment(rounds)
        return True

    def for_first_rounds(self, lead: int, deadline: float | None) -> bool:
        """Wait for a moment if `lead` of a run's first rounds are on their way.

        They show how long a row takes, so that the next ones need not be small. Returns whether to
        ask again, before the next round.
        """
        flow = self._flow
        if flow.done >= _FIRST_ROUNDS or on_worker() or runs_event_loop():
            return False
        if flow.admitted - flow.done >= lead:
            limit = time.monotonic() + _PATIENCE
            self.until(
                flow.admitted - lead // 2, limit if deadline is None else min(limit, deadline)
            )
        return True

    def for_all(self, deadline: float | None = None) -> bool:
        """Wait until all rounds that came in are done. False: the deadline passed."""
        return self.until(self._flow.admitted, deadline)

    def for_a_moment(self, rounds: int) -> None:
        """Wait for a moment, or work, unless this number of rounds is done."""
        flow, system = self._flow, self._system
        if system._is_run_here:
            if not system._run_until(lambda: flow.done >= rounds, None):
                raise RunError(f"{self._life!r} waits, and nothing is ready in {system!r}")
        elif not self._help():
            flow.wait_until_done(rounds, HELP if on_worker() else LOOK)
            self.stalls.look()
            system._runtime.refuse_fork()
            if system.is_closed:
                if (end := self._end_unfinished()) is not None:
                    end()  # what came so far is not the result
                raise RunEnded(f"{system!r} was stopped before {self._life!r} ended")

    def for_failure(self, deadline: float | None) -> None:
        """Wait until a failure is final: until then that of an earlier row may take its place."""
        if self._flow.failure is None or self._life.ended or self._system.is_closed:
            return
        if not self.for_all(deadline):
            raise RunTimeout(f"{self._life!r} still has rounds in flight: {self.slowest()}")

    def slowest(self) -> str:
        """Name the operator that the run waits for."""
        return what_it_waits_for(self._flow, self._programs)
