"""The state of a run, and the calls that it allows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from threading import Lock
from typing import Any

from callboard.core.text import safe_repr
from callboard.core.threads.blocking import refuse_to_block
from callboard.scheduling.worker import on_worker, shares_worker_here
from callboard.streams.errors import RunEnded, RunError
from callboard.streams.planning.plan import close
from callboard.streams.programs.program import Program
from callboard.streams.running.build import Deployment
from callboard.streams.running.call_lock import caller_here
from callboard.streams.running.flow import GraphFlow
from callboard.system import ActorSystem


class RunState(Enum):
    """A state of a run. Rows come in while it is RUNNING.

    RUNNING -> FINISHING -> FINISHED, and from either of the first two to CANCELLED or FAILED.
    """

    RUNNING = "running"
    FINISHING = "finishing"
    """`finish()` was called."""
    FINISHED = "finished"
    CANCELLED = "cancelled"
    """By `cancel()`, or because its system was stopped. Rows on their way are dropped."""
    FAILED = "failed"
    """An operator raised. While rows are on their way, an earlier row's failure may replace it."""


HELP = 0.001  # seconds: how often a waiting worker looks whether there is work for it
_STOPPED = RunState.CANCELLED, RunState.FAILED


class Lifecycle:
    """The state of one run. It checks whether a call is allowed now, and may wait.

    `asks`: the graph waits for answers of actors. Any thread.
    """

    def __init__(
        self, system: ActorSystem, flow: GraphFlow, deployment: Deployment, *, asks: bool
    ) -> None:
        self._system = system
        self._flow = flow
        self._deployment = deployment
        self._asks = asks
        self._caller: Any = None  # the sender, where its thread runs operators
        self._lock = Lock()
        self.finishing = False
        """`finish()` was called."""
        self.ended = False
        """No lane is at work any more, and nothing waits for one."""
        self.ends_with_system = False
        """Its system was stopped before it came to an end."""

    @property
    def state(self) -> RunState:
        """Where the run is. Lanes stop it, as by a failure, at any time."""
        if self._flow.is_stopped:  # after a failure is there
            return RunState.CANCELLED if self._flow.failure is None else RunState.FAILED
        if self.ended:
            return RunState.FINISHED
        return RunState.FINISHING if self.finishing else RunState.RUNNING

    def end(self) -> bool:
        """Note that the run has ended; whether it had not before. Several callers may end it."""
        with self._lock:
            ended, self.ended = self.ended, True
        return not ended

    # --- checks of the state ----------------------------------------------------------------------

    @property
    def takes_rows(self) -> bool:
        """Rows may be sent."""
        return self.state is RunState.RUNNING and not self._system._runtime.closing

    def why_no_rows(self) -> RunError:
        """Say why the run takes no rows."""
        cancelled = "was cancelled, and " if self.state in _STOPPED else ""
        return self.why_ended(f"{self!r} {cancelled}takes no more rows")

    def check_not_stopped(self) -> None:
        """Raise the reason why the run was stopped and has no result, if it was."""
        if self.state in _STOPPED:
            raise self.why_ended(f"{self!r} was cancelled, or its system was stopped")

    def why_ended(self, what: str) -> RunError:
        """Return the reason why the run has ended: it failed, its system has stopped, or `what`."""
        if self.ends_with_system:
            what = f"{self._system!r} was stopped before {self!r} ended"
        failure = self._flow.failure  # it is there before the flow stops
        return RunEnded(what) if failure is None else failure._again()

    # --- checks of callers ------------------------------------------------------------------------

    def check_caller(
        self, call: str, *, by_operators: bool = False, by_any_caller: bool = False
    ) -> None:
        """Raise RunError where this caller may not make a call, whatever the run does.

        An operator of the run would wait for itself, unless the call may be made `by_operators`. If
        the caller's thread runs operators, the first caller, a thread or an actor, is the only one,
        unless it may be made `by_any_caller`.
        """
        if not by_operators and self._flow.is_at_work_here:
            raise RunError(f"{call} in an operator of {self!r} waits for that operator")
        if by_any_caller or not self._deployment.has_caller:
            return
        here = caller_here()
        with self._lock:
            if self._caller is None:
                self._caller = here
        if self._caller is not here:
            raise RunError(
                f"{call} by {safe_repr(here)}: {safe_repr(self._caller)} called first, and runs "
                f"the 'manual' operators of {self!r}"
            )

    def check_wait(
        self, call: str, instead: str, *, for_operators: bool = False, for_others: str = ""
    ) -> None:
        """Raise where a call must not wait: RunError, and WouldBlock in an event loop.

        `instead` is what to do then. A wait `for_operators` must not hold up a worker that an actor
        may need which the graph asks. `for_others` says what the user's other threads or actors
        have to do before the wait ends; they must be able to come.
        """
        has_caller = self._deployment.has_caller
        if for_others:
            if has_caller and self._caller is caller_here():
                raise RunError(
                    f"{call} would wait forever, because other threads may not call {self!r}: "
                    f"{for_others}"
                )
            if shares_worker_here():
                raise RunError(
                    f"{call} in an actor without dedicated=True blocks its worker: {for_others}"
                )
        if has_caller or self._system._is_run_here:
            return
        if not on_worker():
            refuse_to_block(f"{call} of {self!r}", instead)
        elif for_operators and self._asks and shares_worker_here():
            raise RunError(
                f"{call} of {self!r} would block the worker of an actor that the graph asks: "
                f"{instead}, or spawn this actor with dedicated=True"
            )

    def __repr__(self) -> str:
        flow = self._flow
        state = "failed" if flow.failure else "ended" if self.ended else "running"
        return f"<Run {state}, {flow.done} of {flow.admitted} rounds done>"


class ProgramCloser:
    """Closes the programs of a run once, when no lane is in them."""

    def __init__(self, flow: GraphFlow, programs: Sequence[Program]) -> None:
        self._flow = flow
        self._programs = programs
        self._lock = Lock()
        self._closed = False

    def close(self, deadline: float = 0.0) -> None:
        """Let programs go; a later call does if an operator is in a row still at the deadline."""
        while not self._closed and self._lanes_may_enter():
            if self._flow.is_at_work_here or time.monotonic() >= deadline:
                return
            time.sleep(HELP)
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            close(self._programs)

    def _lanes_may_enter(self) -> bool:
        """Tell whether lanes may be in programs. After a cancel they only drop the rows left."""
        flow = self._flow
        if flow.done == flow.admitted:
            return False
        return not flow.is_stopped or self.is_anybody_at_work()

    def is_anybody_at_work(self) -> bool:
        """Tell whether an operator is in the middle of a row."""
        return any(operator.workers for _, operator in self._flow.operators())
