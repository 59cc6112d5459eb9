"""A run: a graph at work in an actor system."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import Any, Generic, Self, TypeVar, overload

from callboard.core import checks
from callboard.core.batches import Batches
from callboard.core.errors import ConfigError
from callboard.core.handles import CopiedAsItself
from callboard.core.text import safe_repr
from callboard.scheduling.flow.heuristics import LastInPipeline
from callboard.scheduling.placement import rebalance
from callboard.scheduling.policies import choose_placement
from callboard.scheduling.worker import on_worker
from callboard.streams.checks import MOST, check_entry
from callboard.streams.errors import RunEnded, RunError, RunTimeout
from callboard.streams.planning.plan import Plan, close, collected_by, result_of, start
from callboard.streams.planning.units import units_of
from callboard.streams.programs.program import Batch
from callboard.streams.running import options
from callboard.streams.running.build import build
from callboard.streams.running.call_lock import CallLock, LockHold
from callboard.streams.running.callers import caller_here
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.heartbeat import Heartbeat
from callboard.streams.running.progress import Progress
from callboard.streams.running.results import Results, await_takers, results_of
from callboard.streams.running.standstill import Standstill, what_it_waits_for
from callboard.streams.running.statistics import RunStatistics, collect
from callboard.streams.running.tally import DeadLetterTally
from callboard.streams.running.untaken import Untaken
from callboard.system import ActorSystem

R = TypeVar("R", covariant=True)
T = TypeVar("T")

_LOOK = 0.1  # seconds: how often a waiting caller looks whether the system still runs
_LEAVE = 10.0  # how long lanes that have ended their last round may take to be gone
_HELP = 0.001  # how often one that keeps a worker busy looks whether there is work for it


class Run(CopiedAsItself, Generic[R]):
    """A graph at work. Made by `ActorSystem.run`; a context manager: leaving it finishes the run.

    Its methods may be called from any thread, and from actors, which then help with the work while
    they wait.
    """

    _ended = _closed = True  # until it has begun

    def __init__(
        self,
        system: ActorSystem,
        plan: Plan,
        *,
        threading: Any = None,
        placement: Any = None,
        policy: Any = None,
        batch_size: int = 512,
        window: int = 256,
        time_slice: float = 0.0005,
        markers: int = 64,
    ) -> None:
        self._system = system
        self._batch_size = checks.whole("batch_size", batch_size, 1, MOST, error=ConfigError)
        self._lock = CallLock()  # of senders
        self._ending = CallLock()
        self._sent = dict.fromkeys(plan.entries, 0)
        self._started = False  # the first round is on its way
        self._finishing = False  # finish() was called
        self._flushed = False  # the last round is on its way
        self._threading = options.threading(threading, system.config)
        units = units_of(plan.steps, self._threading)
        self._placement = options.placement(placement, system.config, units)
        heuristic = options.heuristic(policy, system.config, units)
        self._flow = flow = GraphFlow(
            heuristic or LastInPipeline(),
            options.power_of_two("window", window),
            options.short_time("time_slice", time_slice),
            checks.whole("markers", markers, 0, MOST, error=ConfigError),
            system._runtime.manual,
        )
        timers = system._runtime.timers
        self.tally = DeadLetterTally(system.dead_letters, timers.now)
        self._context = copy_context()  # of functions that the caller's thread calls
        self._programs = self._context.run(plan.make_programs, self.tally)
        self._collected = collected_by(self._programs)
        self._untaken: dict[str, Untaken[Any]] = {}  # by the names of collectors, of results()
        self._begun = time.monotonic()
        try:
            self._crew = build(
                system,
                flow,
                plan,
                self._programs,
                units,
                self._placement,
                chains=heuristic is None and not system._runtime.manual,
            )
        except BaseException:
            close(self._programs)
            raise
        # A sender and a lane that both want the interpreter get it in turns of 5 ms. So the sender
        # fills the window, and leaves the interpreter to the lane until all is done.
        self._refill = flow.window if not self._crew.released else max(1, flow.window // 2)
        self._caller: Any = None  # who has sent, where that one's thread runs operators
        self._standstill = Standstill(flow, system._runtime.team.workers)
        self._claim = Lock()
        self._interrupted = False
        self.tally.lane = self._crew.lanes[0]
        self._heartbeat = Heartbeat(timers, self._programs, partial(_beat, weakref.ref(self)))
        self._ended = self._closed = False

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the graph's entries."""
        return tuple(self._sent)

    # --- sending ---------------------------------------------------------------------------------

    def send(self, entry: str, rows: Iterable[Any], *, timeout: float | None = None) -> None:
        """Send rows into the graph, in order. Rows of several senders are ordered by arrival.

        Waits while `window` rounds are on their way, or too many `results()` are not taken. Raises
        RunTimeout if there is still no room after `timeout` seconds, the run's StreamError once the
        run has failed, and RunEnded when it was finished or cancelled, be it meanwhile. For the
        error it waits until no earlier row can fail any more. If `rows` raises, what it gave before
        is sent.

        Whatever is raised says what became of the rows: `sent` of them went in, and `unsent` are
        those that were taken from `rows` and did not, so that none is lost with an iterator.

        An operator of the same run gets CallboardError: it would wait for itself.
        """
        self._refuse_own_operators("send")
        check_entry(entry, self._sent)
        number = list(self._sent).index(entry)
        deadline = _deadline("send()", timeout)
        self._refuse_other_callers("send")
        batches = Batches("send()", rows, self._batch_size)
        sent = 0
        try:
            for batch in batches:
                hold = self._lock.hold()
                try:
                    self._begin_sending(hold, deadline)
                    self._refuse_if_ended(deadline)
                    self._await_room(deadline)
                    await_takers(self, deadline)  # last: what was on its way has come by then
                    self._admit({number: Batch(batch, self._sent[entry])})
                    self._sent[entry] += len(batch)
                finally:
                    hold.release()
                sent += len(batch)
                batches.taken = []
                self._heartbeat.begin()
                self._raise_interruption()
        except BaseException as error:
            if error is not batches.raised and batches.raised is not None:
                error.__context__ = batches.raised  # which is not to be had from `rows` again
            with suppress(Exception):  # an exception of the caller's may refuse attributes
                error.sent, error.unsent = sent, batches.taken  # type: ignore[attr-defined]
            raise

    def _begin_sending(self, hold: LockHold, deadline: float | None) -> None:
        if not self._acquire(hold, deadline):
            raise RunTimeout(f"another sender waits for room in {self!r}, too")

    def _admit(self, batches: dict[int, Batch]) -> None:
        if not self._started:
            start(self._programs)
            self._started = True
        if self._crew.has_caller:
            self._context.run(self._flow.try_admit, batches)
        else:
            self._flow.try_admit(batches)

    def _acquire(self, hold: LockHold, deadline: float | None) -> bool:
        """Acquire a lock, whose holder may wait for lanes. False: the deadline passed."""
        while not hold.acquire():
            if hold.is_inner:  # as where that call runs a system whose actor makes this one
                raise RunError(
                    f"a call of this thread is sending to {self!r}, or ending it: another one in "
                    "the middle of that waits for itself"
                )
            if deadline is not None and time.monotonic() >= deadline:
                return False
            runs_here = self._system.is_run_here
            if runs_here:  # what another thread's call waits for; the clock stands still
                self._system._run_until(hold.is_free, 0.0)
            elif self._help():
                continue
            if hold.acquire(_HELP if runs_here or on_worker() else _LOOK):
                break
        return True

    def _help(self) -> bool:
        """Work for a slice, on a worker's thread: it waits for what it would do itself."""
        return on_worker() and self._flow.help(self._crew.pools_here())

    def _await_room(self, deadline: float | None) -> None:
        """Wait until a round can be admitted; by who has the lock, and so is the next to do it."""
        flow = self._flow
        self._rest(deadline)
        while not flow.has_room:
            # Many rounds at once: to wake a sender costs more than a round.
            if not self._wait(flow.admitted - flow.window + self._refill, deadline):
                raise RunTimeout(f"no room came in time in {self!r}: {self._slowest()}")
            if self._ended:
                raise self._why_ended(f"{self!r} ended meanwhile")

    def _wait(self, rounds: int, deadline: float | None) -> bool:
        """Wait until so many rounds are done. False: the deadline passed."""
        while self._flow.done < rounds:
            if self._ended:  # by a cancel() that did not wait for an operator; no lane goes on
                raise self._why_ended(f"{self!r} was cancelled")
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self._wait_a_turn(rounds)
        return True

    def _wait_a_turn(self, rounds: int) -> None:
        """Wait for a moment, or work, unless so many rounds are done."""
        flow, system = self._flow, self._system
        if system.is_run_here:
            if not system._run_until(lambda: flow.done >= rounds, None):
                raise RunError(f"{self!r} waits, and nothing is ready in {system!r}")
        elif not self._help():
            flow.wait_until_done(rounds, _HELP if on_worker() else _LOOK)
            self._standstill.look()
            system._runtime.refuse_fork()
            if system.is_closed:
                flow.cancel()  # what came so far is not the result
                self._end()
                raise RunEnded(f"{system!r} was stopped before {self!r} ended")

    def _rest(self, deadline: float | None) -> None:
        """Rest as an operator wants that the caller's thread runs: see throttle()."""
        while seconds := self._flow.callers_rest:
            if deadline is not None:
                if time.monotonic() >= deadline:
                    raise RunTimeout(f"a throttled operator of {self!r} rests for {seconds:.3g} s")
                seconds = min(seconds, max(0.0, deadline - time.monotonic()))
            time.sleep(min(seconds, _LOOK))
            if self._flow.is_stopped:
                self._await_failure(deadline)
                raise self._why_ended(f"{self!r} was cancelled")

    def _refuse_other_callers(self, call: str) -> None:
        """Operators that the caller's thread runs have one thread, or one actor, that is theirs."""
        if not self._crew.has_caller:
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

    def _raise_interruption(self) -> None:
        """Raise what an operator on the caller's thread raised and is for the thread, as Ctrl-C."""
        failure = self._flow.failure if self._crew.has_caller and not self._interrupted else None
        cause = None if failure is None else failure.__cause__
        if cause is not None and not isinstance(cause, Exception):
            self._interrupted = True
            raise cause

    def _refuse_own_operators(self, call: str) -> None:
        if self._flow.is_at_work_here:
            raise RunError(f"{call}() in an operator of {self!r} waits for that operator")

    def _refuse_if_ended(self, deadline: float | None) -> None:
        self._system._runtime.refuse_fork()
        self._await_failure(deadline)
        if self._ended or self._finishing or self._flow.is_stopped or self._system.is_closed:
            cancelled = "was cancelled, and " if self._flow.is_stopped else ""
            raise self._why_ended(f"{self!r} {cancelled}takes no more rows")

    def _await_failure(self, deadline: float | None) -> None:
        """Wait until a failure is final: till then an earlier row's may take its place."""
        if self._flow.failure is None or self._ended or self._system.is_closed:
            return
        if not self._wait(self._flow.admitted, deadline):
            raise RunTimeout(f"{self!r}, and has rounds on their way still: {self._slowest()}")

    def _why_ended(self, what: str) -> RunError:
        """Say why the run does not go on: it failed, or `what`."""
        failure = self._flow.failure  # it is there before the flow stops
        return RunEnded(what) if failure is None else failure.again()

    # --- outputs as they are made ----------------------------------------------------------------

    @overload
    def results(
        self: Run[list[T]], rows: Any = None, *, name: str | None = None, limit: int = 65_536
    ) -> Results[T]: ...
    @overload
    def results(
        self, rows: Any = None, *, name: str | None = None, limit: int = 65_536
    ) -> Results[Any]: ...
    def results(
        self, rows: Any = None, *, name: str | None = None, limit: int = 65_536
    ) -> Results[Any]:
        """Return an iterator of what a collector gets, in order, as it is made. See Results.

        `name` says which, if there are several. One iterator at a time has it; when that one is
        closed or dropped, or has raised, another call gives one that goes on with what is not
        taken. What is taken is not in what `finish()` returns.

        Without `rows`, others send: another thread, or another task by `asyncio.to_thread()`. As
        long as `limit` outputs are not taken, `send()` waits; what is on its way then, of `window`
        batches at most, still comes. Where operators run in the caller's thread, that one takes
        too, by `take()`: RunError if it would wait for itself. The same holds for an actor that is
        not dedicated, as it would hold up its worker.

        With `rows` the iterator sends them itself, a batch at a time, and finishes the run: one
        thread is enough, nothing more than `window` batches is on its way, and there is no `limit`.
        They are an iterable for the one entry of a graph, or by their entries: a dict of iterables,
        which are sent in turns, a batch of each, or pairs in the order of their arrival. If they
        raise, what came of those before is handed out, then their exception is raised, with `sent`
        and `unsent` as by `send()`, and the run is cancelled, as when nobody goes on.

        Raises RunError if there is no such collector, or somebody takes from it.
        """
        self._refuse_other_callers("results")
        limit = checks.whole("limit", limit, 1, error=ConfigError)
        return results_of(self, rows, name, limit)

    # --- the end ---------------------------------------------------------------------------------

    def finish(self, timeout: float | None = None) -> R:
        """Let the operators emit what they still hold, wait for it, and return the results.

        That is what the graph's collector got, but for what was taken from `results()`; a dict of
        lists by name if there are several, None without one. From the call on, the run takes no
        more rows: `send()` raises RunEnded.

        Raises the StreamError of a run that failed, RunEnded of one that was cancelled, and
        RunTimeout after `timeout` seconds; then the run goes on, and finish() may be called again.
        """
        self._refuse_own_operators("finish")
        deadline = _deadline("finish()", timeout)
        self._refuse_other_callers("finish")
        self._finishing = True
        hold = self._ending.hold()
        try:
            if not self._acquire(hold, deadline):
                raise RunTimeout(f"{self!r} did not end in {timeout} s: {self._slowest()}")
            if not self._ended:
                self._flush(deadline)
                if not self._wait(self._flow.admitted, deadline):
                    raise RunTimeout(f"{self!r} did not end in {timeout} s: {self._slowest()}")
            self._end()
        finally:
            hold.release()
        self._raise_interruption()
        if self._flow.is_stopped:
            raise self._why_ended(f"{self!r} was cancelled, or its system was stopped")
        left = {name: untaken.rows() for name, untaken in self._untaken.items()}
        result: R = result_of(self._collected | left)
        return result

    def _flush(self, deadline: float | None) -> None:
        hold = self._lock.hold()
        try:
            self._begin_sending(hold, deadline)
            if not self._flushed and not self._flow.is_stopped:
                sent = enumerate(self._sent.values())
                self._await_room(deadline)
                self._admit({entry: Batch([], rows, True) for entry, rows in sent})
                self._flushed = True
        finally:
            hold.release()

    def cancel(self, timeout: float = 5.0) -> None:
        """Drop what is on its way, and end. Waits for operators in the middle of a batch, `timeout`
        seconds at most; called again, it goes on waiting. Calls of send() and finish() that wait
        meanwhile raise RunEnded.

        Once no operator is in the middle of a row, the files of sinks are closed.
        """
        deadline = time.monotonic() + checks.seconds("cancel()'s timeout", timeout)
        if self._ended:
            self._close(deadline)
            return
        self._flow.cancel()  # first: a finish() that has the lock waits for what this drops
        for lane in self._crew.lanes:
            if lane.is_alive:
                lane.tell(0)  # it may rest
        hold = self._ending.hold()
        try:
            with suppress(RunError):  # another call ended it meanwhile, or its system was stopped
                if self._acquire(hold, deadline) and not self._ended:
                    self._wait(self._flow.admitted, deadline)
            self._end()
        finally:
            hold.release()

    def _end(self) -> None:
        """End, and let lanes and programs go."""
        with self._claim:  # who waits ends a run whose system was stopped; several may
            ended, self._ended = self._ended, True
        if not ended:
            self._crew.lanes.stop()
        self._close()

    def _close(self, deadline: float = 0.0) -> None:
        """Let programs go; a later call does if an operator is in a row still at the deadline."""
        while not self._closed and self._may_touch_programs():
            if self._flow.is_at_work_here or time.monotonic() >= deadline:
                return
            time.sleep(_HELP)
        with self._claim:
            closed, self._closed = self._closed, True
        if not closed:
            close(self._programs)

    def _may_touch_programs(self) -> bool:
        """Tell whether a lane may. What is left after a cancel touches none: it is dropped."""
        flow = self._flow
        if flow.done == flow.admitted:
            return False
        return not flow.is_stopped or self._is_anybody_at_work()

    def _is_anybody_at_work(self) -> bool:
        return any(operator.workers for _, operator in self._flow.operators())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.cancel()

    def __del__(self, warn: Any = warnings.warn) -> None:  # at exit the module may be empty
        if not self._ended:
            if self._flow.admitted:
                warn(f"{self!r} was never finished", ResourceWarning, 2, self)
            self._flow.cancel()
            self._crew.lanes.stop()

    # --- what can be seen ------------------------------------------------------------------------

    def statistics(self) -> RunStatistics:
        """Say how the run does: rows, costs and queues of each operator, and latencies.

        A worker counts when it turns to something else, so until then the latest rows are not in
        it; those of a finished run all are.
        """
        at_work = self._flow.done < self._flow.admitted  # for as long as an operator likes
        deadline = time.monotonic() + (_LOOK if at_work else _LEAVE)
        while self._ended and time.monotonic() < deadline:
            if not self._is_anybody_at_work():
                break
            time.sleep(_HELP)
        seconds = time.monotonic() - self._begun
        rows = self._flow.rows
        return collect(self._flow, self.tally, rows, seconds, self._crew.homes, self._programs)

    def rebalance(self, policy: Any = None) -> int:
        """Let a placement policy, or the name of one, arrange the `assigned` operators anew; return
        how many move. Without one it is the run's.

        The policy is handed the operators' lanes, which are actors, and move as those do: no row is
        lost or reordered. Raises RunError in a run without such operators; PolicyError,
        ConfigError; CallboardError if there may be no more threads.
        """
        system = self._system
        system._runtime.refuse_fork()
        chosen = self._placement if policy is None else choose_placement(policy)
        lanes = [lane for _, lane, _ in self._crew.assigned]
        if not lanes:
            raise RunError(
                f"rebalance() moves operators whose threading is 'assigned', and {self!r} has none"
            )
        team = system._runtime.team
        moves = rebalance(lanes, team.workers, chosen)
        if any(worker.index >= team.started for _, worker in moves):
            team.start(len(team.workers))
        for lane, worker in moves:
            worker.take_over(lane)
        return len(moves)

    def progress(self, total: int | None = None, *, every: float = 0.5) -> Progress:
        """Show on stderr how the run gets on, within a `with` block. See Progress."""
        return Progress(self.statistics, total, every=every)

    def _slowest(self) -> str:
        return what_it_waits_for(self._flow)

    def __repr__(self) -> str:
        flow = self._flow
        state = "failed" if flow.failure else "ended" if self._ended else "running"
        return f"<Run {state}, {flow.done} of {flow.admitted} rounds done>"


def _beat(reference: weakref.ref[Run[Any]]) -> bool | None:
    """Admit a round without rows, unless a sender is about to. See Heartbeat."""
    run = reference()
    if run is None or run._crew.has_caller:  # whose operators no other thread may run
        return None
    hold = run._lock.hold()
    try:
        if not hold.acquire():
            return True
        if run._ended or run._finishing or run._flow.is_stopped:
            return None
        busy = run._flow.done < run._flow.admitted
        run._flow.try_admit({})
        return busy
    finally:
        hold.release()


def _deadline(call: str, timeout: float | None) -> float | None:
    seconds = checks.timeout(f"{call}'s timeout", timeout)
    return None if seconds is None else time.monotonic() + seconds
