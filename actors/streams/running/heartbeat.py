"""Heartbeats: rounds without rows.

They are for operators that look at the clock though nothing comes, and for those whose outputs have
no round to leave with.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

from callboard.streams.programs.program import Program
from callboard.streams.running.build import Crew
from callboard.streams.running.call_lock import CallLock
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.lifecycle import Lifecycle, RunState
from callboard.timers import Timers

_AGAIN = 0.002  # seconds: a sender is about to add a round, or there is no room for one


class Heartbeat:
    """Calls `beat()` on the timers' thread, from a round that came until no program wants one.

    It says whether earlier rounds are on their way, after which one may; None: all is over.
    """

    def __init__(
        self, timers: Timers, programs: Sequence[Program], beat: Callable[[], bool | None]
    ) -> None:
        self._timers = timers
        self._beat = beat
        self._programs = [program for program in programs if program.looks_every > 0]
        self._every = min([program.looks_every for program in self._programs], default=0.0)
        self._lock = Lock()
        self._is_due = False

    def begin(self) -> None:
        """See to it that a beat is due, if a program wants one. In any thread."""
        if not self._programs:
            return
        with self._lock:
            if self._is_due:
                return
            self._is_due = True
        try:
            self._timers.call_after(self._every, self._act)
        except BaseException:
            self._is_due = False
            raise

    def _act(self) -> None:
        self._is_due = False
        busy = self._beat()
        if busy is None:
            return
        if busy or any(program.wants_heartbeats() for program in self._programs):
            self.begin()


class ExtraRounds:
    """Calls `add()` on the timers' thread for each round that is asked for, until it has worked."""

    def __init__(self, timers: Timers, add: Callable[[], bool]) -> None:
        self._timers = timers
        self._add = add
        self._lock = Lock()
        self._is_due = False

    def ask(self, seconds: float = 0.0) -> None:
        """See to it that a round is added, soon. In any thread."""
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
        if not self._add():
            self.ask(_AGAIN)


class RunWithRounds(Protocol):
    """A run, as those who add rounds to it see it."""

    flow: GraphFlow
    life: Lifecycle
    lock: CallLock
    crew: Crew
    has_last_round: bool
    """The last round is on its way."""


def beat(reference: weakref.ref[RunWithRounds]) -> bool | None:
    """Admit a round without rows, unless a sender is about to. See Heartbeat."""
    run = reference()
    if run is None or run.crew.has_caller:  # whose operators no other thread may run
        return None
    hold = run.lock.hold()
    try:
        if not hold.acquire():
            return True
        if run.life.state is not RunState.RUNNING:
            return None
        busy = run.flow.done < run.flow.admitted
        run.flow.try_admit({})
        return busy
    finally:
        hold.release()


def add_round(reference: weakref.ref[RunWithRounds]) -> bool:
    """Admit a round without rows. False: there is no room, or a call that may admit others has the
    lock. True as well where none is needed, or may come.
    """
    run = reference()
    if run is None or run.crew.has_caller:  # whose operators no other thread may run
        return True
    hold = run.lock.hold()
    try:
        if not hold.acquire():
            return False
        if run.life.ended or run.has_last_round or run.flow.is_stopped:
            return True
        return bool(run.flow.try_admit({}))
    finally:
        hold.release()
