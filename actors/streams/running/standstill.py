"""Runs that stand still: which operators are in the middle of a row, and which wait meanwhile.

Where workers are shared, an operator that waits for another one's progress may hold the worker
which that one needs. On an interpreter with a lock, one worker at a time runs the Python operators
of the model `dynamic`; without it there are as many as the system has. The run cannot know why an
operator waits, so it goes on, and logs it.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Sequence

from callboard.core.log import log
from callboard.scheduling.flow.heuristics import OperatorView
from callboard.scheduling.worker import WorkerThread
from callboard.streams.running.flow import GraphFlow

_LONG = 2.0  # seconds without a round that left the graph


class Standstill:
    """Has the log say once of a run that rows wait while operators stay in the middle of others."""

    def __init__(self, flow: GraphFlow, workers: Sequence[WorkerThread]) -> None:
        self._flow = flow
        self._workers = workers
        self._done, self._since = -1, 0.0
        self._is_told = False

    def look(self) -> None:
        """Look whether the run gets on. Threads that wait for the run call this now and then."""
        done, now = self._flow.done, time.monotonic()
        if done != self._done:
            self._done, self._since = done, now
        elif not self._is_told and now - self._since >= _LONG:
            at_work, waiting = _at_work_and_waiting(self._flow)
            if at_work and waiting:
                self._is_told = True
                log.warning(
                    "rows wait for a worker, while operators stay in the middle of others: one "
                    "that waits for another operator wants a thread, as by threading='dedicated'",
                    at_work=_names(at_work),
                    waiting=_names(waiting),
                    seconds=round(now - self._since, 1),
                    exception="".join(self._stacks()),
                )

    def _stacks(self) -> list[str]:
        """Say where workers are, as far as they are in Python."""
        frames = sys._current_frames()
        found = []
        for worker in self._workers:
            frame = None if worker.thread is None else frames.get(worker.thread.ident or 0)
            if frame is not None:
                found += [f"{worker.name}:\n", *traceback.format_stack(frame)]
        return found


def what_it_waits_for(flow: GraphFlow) -> str:
    """Say at which operator most rows wait, and which are in the middle of a row."""
    operators = [operator for _, operator in flow.operators()]
    slow = max(operators, key=lambda operator: operator.queued)
    said = f"about {slow.queued:.0f} rows wait for the operator {slow.name!r}"
    at_work, _ = _at_work_and_waiting(flow)
    return f"{said}, and {_names(at_work)} is in the middle of a row" if at_work else said


def _at_work_and_waiting(flow: GraphFlow) -> tuple[list[OperatorView], list[OperatorView]]:
    operators = [operator for _, operator in flow.operators()]
    at_work = [operator for operator in operators if operator.workers]
    return at_work, [each for each in operators if each.queued >= 1 and not each.workers]


def _names(operators: Sequence[OperatorView]) -> str:
    return ", ".join(repr(operator.name) for operator in operators)
