"""A graph at work in an actor system: its parts, those who wait for it, and its end."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from contextvars import copy_context
from threading import Lock
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.log import log
from callboard.core.text import counted, safe_repr
from callboard.core.threads.blocking import refuse_to_block
from callboard.observing.layout import GraphShape
from callboard.observing.wait import WaitRecord
from callboard.scheduling.flow.heuristics import LastInPipeline
from callboard.scheduling.worker import on_worker, shares_worker_here
from callboard.streams.checks import MOST
from callboard.streams.errors import RunEnded, RunError, RunTimeout
from callboard.streams.planning.plan import Plan, close
from callboard.streams.planning.units import units_of
from callboard.streams.programs.rows.answers import Answers
from callboard.streams.running import options
from callboard.streams.running.build import build
from callboard.streams.running.callers import CallLock, LockHold, caller_here
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.seeing import waits_of_operators
from callboard.streams.running.standstill import Standstill, what_it_waits_for
from callboard.streams.running.statistics import lags_of, recent_latency
from callboard.streams.running.tally import DeadLetterTally
from callboard.system import ActorSystem

LOOK = 0.1  # seconds: how often a waiting caller looks whether the system still runs
HELP = 0.001  # how often one that keeps a worker busy looks whether there is work for it


class Execution:
    """A graph at work, until `cancel()` or `end()`. Lets no rows in: see Admission.

    Its methods may be called from any thread, and from actors, which then help with the work while
    they wait.
    """

    ended = _closed = True  # until it has begun

    def __init__(
        self,
        system: ActorSystem,
        plan: Plan,
        *,
        threading: Any,
        placement: Any,
        policy: Any,
        window: int,
        time_slice: float,
        markers: int,
        hot_keys: int,
    ) -> None:
        self.system = system
        self.ending = CallLock()
        self._plan = plan
        units = units_of(plan.steps, options.threading(threading, system.config))
        self.placement = options.placement(placement, system.config, units)
        heuristic = options.heuristic(policy, system.config, units)
        self.flow = flow = GraphFlow(
            heuristic or LastInPipeline(),
            options.power_of_two("window", window),
            options.short_time("time_slice", time_slice),
            checks.whole("markers", markers, 0, MOST, error=ConfigError),
            system._runtime.manual,
        )
        self.tally = DeadLetterTally(system.dead_letters, system._runtime.timers.now)
        self.context = copy_context()  # of functions that the caller's thread calls
        self.programs = self.context.run(plan.make_programs, self.tally)
        self._asks = False
        for program in self.programs:
            if isinstance(program, Answers):
                self._asks = self._asks or program.asks
                runtime = system._runtime
                program.enter_system(
                    runtime.event_loop, runtime.timers, runtime.team, _seed_of(system)
                )
        self.begun = time.monotonic()
        try:
            options.hot_keys(hot_keys, self.programs)
            self.crew = build(
                system,
                flow,
                plan,
                self.programs,
                units,
                self.placement,
                chains=heuristic is None and not system._runtime.manual,
            )
        except BaseException:
            close(self.programs)
            raise
        self._caller: Any = None  # the sender, where its thread runs operators
        self._team = system._runtime.team
        self._standstill = Standstill(flow, self._team.workers, self.crew.shared_pools())
        self._claim = Lock()
        self._interrupted = False
        self._ends_with_system = False
        self.tally.lane = self.crew.lanes[0]
        self.ended = self._closed = False
        system._observer.add_graph(self)

    # --- who may call -----------------------------------------------------------------------------

    def refuse_own_operators(self, call: str) -> None:
        """Raise RunError in an operator of this graph: it would wait for itself."""
        if self.flow.is_at_work_here:
            raise RunError(f"{call}() in an operator of {self!r} waits for that operator")

    def refuse_other_callers(self, call: str) -> None:
        """Operators that the caller's thread runs have one thread, or one actor, that is theirs."""
        if not self.crew.has_caller:
            return
        here = caller_here()
        with self._claim:
            if self._caller is None:
                self._caller = here
        if self._caller is not here:
            raise RunError(
                f"{call}() by {safe_repr(here)}: {safe_repr(self._caller)} has called before, and "
                f"runs the operators of {self!r} that are 'manual'"
            )

    def refuse_to_wait(self, call: str, why: str) -> None:
        """Refuse to wait for another thread, or actor, where that one could not come."""
        if self.crew.has_caller and self._caller is caller_here():
            raise RunError(f"{call} waits for nobody, as others may not call {self!r}: {why}")
        if shares_worker_here():
            raise RunError(f"{call} in an actor without dedicated=True holds up its worker: {why}")

    def refuse_loop(self, call: str, instead: str) -> None:
        """Refuse to wait for workers where that would block an event loop."""
        if not (self.crew.has_caller or self.system.is_run_here or on_worker()):
            refuse_to_block(f"{call} of {self!r}", instead)

    def refuse_worker(self, call: str, instead: str) -> None:
        """Refuse to hold up a worker that an actor may need which the graph asks."""
        if not self._asks or self.crew.has_caller or self.system.is_run_here:
            return
        if shares_worker_here():
            raise RunError(
                f"{call} of {self!r} would hold up the worker that an actor needs whom the graph "
                f"asks: {instead}, or spawn this actor with dedicated=True"
            )

    # --- waiting ----------------------------------------------------------------------------------

    def acquire(self, hold: LockHold, deadline: float | None) -> bool:
        """Acquire a lock, whose holder may wait for lanes. False: the deadline passed."""
        while not hold.acquire():
            if hold.is_inner:  # as where that call runs a system whose actor makes this one
                raise RunError(
                    f"a call of this thread is sending to {self!r}, or ending it: another one in "
                    "the middle of that waits for itself"
                )
            if deadline is not None and time.monotonic() >= deadline:
                return False
            runs_here = self.system.is_run_here
            if runs_here:  # what another thread's call waits for; the clock stands still
                self.system._run_until(hold.is_free, 0.0)
            elif self._help():
                continue
            if hold.acquire(HELP if runs_here or on_worker() else LOOK):
                break
        return True

    def _help(self) -> bool:
        """Work for a slice, on a worker's thread: it waits for what it would do itself."""
        return on_worker() and self.flow.help(self.crew.pools_here())

    def wait(self, rounds: int, deadline: float | None) -> bool:
        """Wait until so many rounds are done. False: the deadline passed."""
        while self.flow.done < rounds:
            if self.ended:  # by a cancel() that did not wait for an operator; no lane goes on
                raise self.why_ended(f"{self!r} was cancelled")
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self.wait_a_turn(rounds)
        return True

    def wait_for_all(self) -> None:
        """Wait until all that was let in is done."""
        self.wait(self.flow.admitted, None)

    def wait_a_turn(self, rounds: int) -> None:
        """Wait for a moment, or work, unless so many rounds are done."""
        flow, system = self.flow, self.system
        if system.is_run_here:
            if not system._run_until(lambda: flow.done >= rounds, None):
                raise RunError(f"{self!r} waits, and nothing is ready in {system!r}")
        elif not self._help():
            flow.wait_until_done(rounds, HELP if on_worker() else LOOK)
            self._standstill.look()
            system._runtime.refuse_fork()
            if system.is_closed:
                self._end_unfinished()  # what came so far is not the result
                raise RunEnded(f"{system!r} was stopped before {self!r} ended")

    def waits(self) -> list[WaitRecord]:
        """Say of each operator, and of the rows to come in, why nothing is done there."""
        return waits_of_operators(self.flow, self._plan.names_of_inputs())

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run and of each operator so far, for JSON."""
        skipped, late, unpaired = self.tally.totals()
        lags = lags_of(self.flow)
        times = recent_latency(self.flow)
        operators = [
            {
                "name": view.name,
                "step": step,
                "rows_in": view.taken,
                "rows_out": view.given,
                "queued": view.queued,
                "workers": view.workers,
                "cost": view.cost,
                "busy": view.busy,
                "watermark_lag": lags.get(step),
            }
            for step, view in self.flow.operators()
        ]
        return {
            "run": repr(self),
            "seconds": time.monotonic() - self.begun,
            "rows": self.flow.rows,
            "skipped": skipped,
            "late": late,
            "unpaired": unpaired,
            "latency": None if times is None else {"p50": times.median, "p99": times.p99},
            "operators": operators,
        }

    def shape(self) -> GraphShape:
        """Return what the run looks like: entries, and operators by their numbers."""
        entries = len(self._plan.entries)
        boxes = [(name, "entry", "") for name in self._plan.entries]
        boxes += [(step.name, step.kind, str(i)) for i, step in enumerate(self._plan.steps)]
        lines = [
            (source if number is None else entries + number, entries + i, "")
            for i, step in enumerate(self._plan.steps)
            for number, source in step.sources
        ]
        return GraphShape(boxes, lines, [])

    def slowest(self) -> str:
        """Say what it waits for."""
        asking = [each for each in self.programs if isinstance(each, Answers) and each.in_flight]
        awaited = [
            f"; {each.name!r} waits for {counted(each.in_flight, 'answer')}" for each in asking
        ]
        return "".join([what_it_waits_for(self.flow), *awaited])

    def leave_waits(self) -> None:
        """Cancel it if its threads wait for answers: its system is being stopped. In any thread."""
        if any(isinstance(each, Answers) and each.holds_thread for each in self.programs):
            self.flow.cancel()

    def end_with_system(self) -> None:
        """End, as its system has stopped: close files and sinks. In any thread."""
        is_left = (
            self.system._shutdown.leave_by is not None
        )  # by the end of `with`, and not by stop()
        if is_left and self.flow.admitted and not self.flow.is_stopped:
            entries = ", ".join(self._plan.entries)
            log.warning("a run was never finished", run=repr(self), entries=entries)
        self._end_unfinished()

    def _end_unfinished(self) -> None:
        if not self.flow.is_stopped:
            self._ends_with_system = True
        self.flow.cancel()
        self.end()

    # --- failures ---------------------------------------------------------------------------------

    def await_failure(self, deadline: float | None) -> None:
        """Wait until a failure is final: till then an earlier row's may take its place."""
        if self.flow.failure is None or self.ended or self.system.is_closed:
            return
        if not self.wait(self.flow.admitted, deadline):
            raise RunTimeout(f"{self!r}, and has rounds on their way still: {self.slowest()}")

    def why_ended(self, what: str) -> RunError:
        """Say why the run does not go on: it failed, its system has stopped, or `what`."""
        if self._ends_with_system:
            what = f"{self.system!r} was stopped before {self!r} ended"
        failure = self.flow.failure  # it is there before the flow stops
        return RunEnded(what) if failure is None else failure.again()

    def refuse_if_stopped(self) -> None:
        """Raise why the run ended, unless it was by `finish()`."""
        if self.flow.is_stopped:
            raise self.why_ended(f"{self!r} was cancelled, or its system was stopped")

    def raise_interruption(self) -> None:
        """Raise what an operator on the caller's thread raised and is for the thread, as Ctrl-C."""
        failure = self.flow.failure if self.crew.has_caller and not self._interrupted else None
        cause = None if failure is None else failure.__cause__
        if cause is not None and not isinstance(cause, Exception):
            self._interrupted = True
            raise cause

    # --- the end ----------------------------------------------------------------------------------

    def cancel(self, timeout: float = 5.0) -> None:
        """Drop what is on its way, and end. See `Run.cancel`."""
        deadline = time.monotonic() + checks.seconds("cancel()'s timeout", timeout)
        if self.ended:
            self._close(deadline)
            return
        self.flow.cancel()  # first: a finish() that has the lock waits for what this drops
        for lane in self.crew.lanes:
            if lane.is_alive:
                lane.tell(0)  # it may rest
        if self.flow.is_at_work_here:  # where a call from elsewhere ends it, as after a failure
            return
        hold = self.ending.hold()
        try:
            with suppress(RunError):  # another call ended it meanwhile, or its system was stopped
                if self.acquire(hold, deadline) and not self.ended:
                    self.wait(self.flow.admitted, deadline)
            self.end()
        finally:
            hold.release()

    def end(self) -> None:
        """End, and let lanes and programs go."""
        with self._claim:  # a waiter ends a run whose system was stopped; several may
            ended, self.ended = self.ended, True
        if not ended:
            self._standstill.end()
            self._team.unfollow(self.flow)
            self.crew.lanes.stop()
            self.system._observer.note_end(self)
        self._close()

    def _close(self, deadline: float = 0.0) -> None:
        """Let programs go; a later call does if an operator is in a row still at the deadline."""
        while not self._closed and self._may_touch_programs():
            if self.flow.is_at_work_here or time.monotonic() >= deadline:
                return
            time.sleep(HELP)
        with self._claim:
            closed, self._closed = self._closed, True
        if not closed:
            close(self.programs)

    def _may_touch_programs(self) -> bool:
        """Tell whether a lane may. After a cancel the rows that are left are dropped, and touch
        none.
        """
        flow = self.flow
        if flow.done == flow.admitted:
            return False
        return not flow.is_stopped or self.is_anybody_at_work()

    def is_anybody_at_work(self) -> bool:
        """Tell whether an operator is in the middle of a row."""
        return any(operator.workers for _, operator in self.flow.operators())

    def __del__(self, warn: Any = warnings.warn) -> None:  # at exit the module may be empty
        if not self.ended:
            if self.flow.admitted:
                warn(f"{self!r} was never finished", ResourceWarning, 2, self)
            self.flow.cancel()
            self.flow.leave_answers()  # before the collector empties the refs of lanes
            self._standstill.end()
            self.crew.lanes.stop()
            if not self.flow.admitted:  # no lane is in them
                close(self.programs)

    def __repr__(self) -> str:
        flow = self.flow
        state = "failed" if flow.failure else "ended" if self.ended else "running"
        return f"<Run {state}, {flow.done} of {flow.admitted} rounds done>"


def _seed_of(system: ActorSystem) -> int | None:
    """Return what makes the runs of a manual system the same each time."""
    return getattr(system, "seed", None)
