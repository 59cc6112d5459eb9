"""Heartbeats: rounds without rows.

They let operators look at the clock while no rows arrive, and carry outputs that would otherwise
have no round to leave in.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from callboard.streams.programs.program import Program
from callboard.streams.running.build import Deployment
from callboard.streams.running.call_lock import CallLock
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.lifecycle import Lifecycle, RunState
from callboard.timers import Timers

_AGAIN = 0.002  # seconds until a retry: another call has the lock, or there is no room


class RoundTimer:
    """Calls `add()` on the timers' thread, once for all requests made before the call.

    `add()` returns the seconds until its next call, or None to wait for the next request.
    """

    def __init__(self, timers: Timers, add: Callable[[], float | None]) -> None:
        self._timers = timers
        self._add = add
        self._lock = Lock()
        self._is_due = False

    def ask(self, seconds: float = 0.0) -> None:
        """Request a call after some seconds, unless one is due already. Thread-safe."""
        with self._lock:
            if self._is_due:
                return
            self._is_due = True
        try:
            self._timers.call_after(seconds, self._act)
        except BaseException:
            self._is_due = False
            raise

    def _act(self) -> None:
        self._is_due = False
        again = self._add()
        if again is not None:
            self.ask(again)


class RunWithRounds(Protocol):
    """The interface of a run for adding rounds."""

    flow: GraphFlow
    life: Lifecycle
    lock: CallLock
    deployment: Deployment
    programs: list[Program]
    has_last_round: bool
    """The last round is on its way."""


def beat(reference: weakref.ref[RunWithRounds], every: float) -> float | None:
    """Admit a round without rows, unless another call has the run's lock: it may admit one itself.

    Return the seconds until the next heartbeat: `every` while rounds are in flight or a program
    needs heartbeats, otherwise None.
    """
    run = reference()
    if run is None or run.deployment.has_caller:  # whose operators no other thread may run
        return None
    hold = run.lock.hold()
    try:
        if not hold.acquire():
            return every
        if run.life.state is not RunState.RUNNING:
            return None
        busy = run.flow.done < run.flow.admitted
        run.flow.try_admit({})
    finally:
        hold.release()
    looking = [program for program in run.programs if program.looks_every > 0]
    return every if busy or any(program.wants_heartbeats() for program in looking) else None


def add_round(reference: weakref.ref[RunWithRounds]) -> float | None:
    """Admit a round without rows.

    Return the seconds until a retry if there is no room or another call has the lock, otherwise
    None.
    """
    run = reference()
    if run is None or run.deployment.has_caller:  # whose operators no other thread may run
        return None
    hold = run.lock.hold()
    try:
        if not hold.acquire():
            return _AGAIN
        if run.life.ended or run.has_last_round or run.flow.is_stopped:
            return None
        return None if run.flow.try_admit({}) else _AGAIN
    finally:
        hold.release()
