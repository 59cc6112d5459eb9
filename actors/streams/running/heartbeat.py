"""Rounds without rows.

They are for operators that look at the clock though nothing comes, and for those whose outputs have
no round to leave with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from callboard.streams.programs.program import Program
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
