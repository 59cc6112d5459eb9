"""Detection of stalled runs, and threads that help them.

Where workers are shared, an operator that waits for another one's progress may hold the worker
which that one needs. On an interpreter with a lock, one worker at a time runs the Python operators
of the model `dynamic`; without it there are as many as the system has. The run cannot know why an
operator waits. So it logs the operator, and another thread works on the rows that wait, until the
run ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from callboard.core.log import log
from callboard.core.text import counted
from callboard.core.tracebacks import current_frames, format_stack
from callboard.scheduling.flow.heuristics import OperatorView
from callboard.scheduling.worker import WorkerThread
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.answers import Answers
from callboard.streams.running.flow import GraphFlow

_LONG = 2.0  # seconds without a round that left the graph
_NAP = 0.005  # seconds between two looks of a thread that has nothing to do


class StallDetector:
    """Starts a thread that works on waiting rows while operators are stuck in other rows.

    The thread works on `pools`. The log says so once. There is one more such thread each time that
    the run stands still again, as far as there are operators.
    """

    def __init__(
        self, flow: GraphFlow, workers: Sequence[WorkerThread], pools: Sequence[int]
    ) -> None:
        self._flow = flow
        self._workers = workers
        self._pools = pools
        self._done, self._since = -1, 0.0
        self._ended = threading.Event()
        self._helpers = 0

    def look(self) -> None:
        """Check for progress. Threads that wait for the run call this repeatedly."""
        done, now = self._flow.done, time.monotonic()
        if done != self._done:
            self._done, self._since = done, now
        elif now - self._since >= _LONG and not self._ended.is_set():
            at_work, waiting = _at_work_and_waiting(self._flow)
            if at_work and waiting and self._helpers < len(self._flow.operators()):
                self._since = now
                self._help(at_work, waiting)

    def end(self) -> None:
        """Let the threads end, after the slices that they are in."""
        self._ended.set()

    def _help(self, at_work: Sequence[OperatorView], waiting: Sequence[OperatorView]) -> None:
        self._helpers += 1
        if self._helpers == 1:
            log.warning(
                "rows are waiting for a worker, while operators are still busy with other rows; "
                "another thread processes the waiting rows. An operator that waits for another one "
                "needs a separate thread, such as by threading='dedicated'",
                at_work=_names(at_work),
                waiting=_names(waiting),
                exception="".join(self._stacks()),
            )
        if self._pools:
            name = f"{self._workers[0].name}-helper-{self._helpers}"
            with suppress(RuntimeError):  # there may be no more threads: then the run stands still
                threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        flow = self._flow
        while not (self._ended.is_set() or flow.is_stopped):
            if not flow.help(self._pools):
                flow.wait_until_done(flow.done + 1, _NAP)

    def _stacks(self) -> list[str]:
        """Return the stacks of workers that are in Python."""
        frames = current_frames()
        found = []
        for worker in self._workers:
            frame = None if worker.thread is None else frames.get(worker.thread.ident or 0)
            if frame is not None:
                found += [f"{worker.name}:\n", *format_stack(frame)]
        return found


def what_it_waits_for(flow: GraphFlow, programs: Sequence[Program]) -> str:
    """Name the operator where most rows wait, those in a row, and those that wait for answers."""
    operators = [operator for _, operator in flow.operators()]
    slow = max(operators, key=lambda operator: operator.queued)
    said = f"the operator {slow.name!r} has about {counted(round(slow.queued), 'row')} waiting"
    at_work, _ = _at_work_and_waiting(flow)
    if at_work:
        said += f", and {_names(at_work)} is in the middle of a row"
    for each in programs:
        if isinstance(each, Answers) and each.in_flight:
            said += f"; {each.name!r} waits for {each.waits_for}"
    return said


def _at_work_and_waiting(flow: GraphFlow) -> tuple[list[OperatorView], list[OperatorView]]:
    operators = [operator for _, operator in flow.operators()]
    at_work = [operator for operator in operators if operator.workers]
    return at_work, [each for each in operators if each.queued >= 1 and not each.workers]


def _names(operators: Sequence[OperatorView]) -> str:
    return ", ".join(repr(operator.name) for operator in operators)
