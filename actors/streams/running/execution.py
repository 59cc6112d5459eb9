"""A graph at work in an actor system: it takes rows, lets callers wait, and ends."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from callboard.core import checks
from callboard.core.errors import AskCancelled, ConfigError
from callboard.core.log import log
from callboard.observing.layout import GraphShape
from callboard.observing.wait import WaitRecord
from callboard.rows.batches import Batches
from callboard.scheduling.flow.heuristics import LastInPipeline
from callboard.scheduling.worker import on_worker
from callboard.streams.checks import MOST, check_entry
from callboard.streams.errors import RunEnded, RunError, RunTimeout
from callboard.streams.planning.plan import Plan, close, collected_by, result_of, start
from callboard.streams.planning.units import units_of
from callboard.streams.programs.program import Batch
from callboard.streams.programs.round_sizes import MOST_ROWS, RoundSizes
from callboard.streams.programs.rows.answers import Answers, UnorderedAnswers
from callboard.streams.running import options
from callboard.streams.running.build import build
from callboard.streams.running.call_lock import CallLock, LockHold
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.heartbeat import ExtraRounds, Heartbeat, add_round, beat
from callboard.streams.running.inspection import waits_of_operators
from callboard.streams.running.lifecycle import Lifecycle
from callboard.streams.running.output_buffer import OutputBuffers
from callboard.streams.running.results import Outlook
from callboard.streams.running.row_counts import DeadLetterTally
from callboard.streams.running.snapshotting import Recovery, Snapshotting
from callboard.streams.running.stall_detector import StallDetector, what_it_waits_for
from callboard.streams.running.statistics import figures_of
from callboard.streams.snapshots.cut import Cut, cut_of
from callboard.streams.snapshots.snapshot import Snapshot
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types

LOOK = 0.1  # seconds: how often a waiting caller looks whether the system still runs
HELP = 0.001  # how often one that keeps a worker busy looks whether there is work for it


class Execution:
    """A graph at work, until `finish()` or `cancel()`.

    It takes rows in the order of their arrival. Its methods may be called from any thread, and from
    actors, which then help with the work while they wait.
    """

    _closed = True  # until it has begun
    life: Lifecycle

    def __init__(
        self,
        system: ActorSystem,
        plan: Plan,
        *,
        batch_size: int | None,
        restore: Any,
        **settings: Any,
    ) -> None:
        if batch_size is not None:
            batch_size = checks.whole("batch_size", batch_size, 1, MOST, error=ConfigError)
        elif system._runtime.manual:  # where a seed decides all, and no clock does
            batch_size = MOST_ROWS
        self.batch_size = batch_size or MOST_ROWS  # at most
        self.system = system
        self.plan = plan
        self.lock = CallLock()  # of senders
        self.ending = CallLock()  # of finish() and cancel()
        self.sent = dict.fromkeys(plan.entries, 0)
        self._started = False  # the first round is on its way
        self.has_last_round = False  # it is on its way
        recovery = Recovery(restore, plan, system)
        self.snapshots = Snapshotting(recovery)
        try:
            self._build(**settings)
        except BaseException:
            recovery.end()
            raise
        self.experiment = threading.Lock()
        # An experiment slows the sender down here.
        self.admit_round: Callable[[dict[int, Batch]], bool] = self.flow.try_admit
        self._size = batch_size or RoundSizes(self.flow, system.config.workers).next
        # A sender and a lane that both want the interpreter get it in turns of 5 ms. So the sender
        # fills the window, and leaves the interpreter to the lane until all is done.
        window = self.flow.window
        self._refill = window if not self.crew.released else max(1, window // 2)
        timers = system._runtime.timers
        self._heartbeat = Heartbeat(timers, self.programs, partial(beat, weakref.ref(self)))
        extra = ExtraRounds(timers, partial(add_round, weakref.ref(self)))
        for program in self.programs:
            if isinstance(program, UnorderedAnswers):
                program.add_round = extra.ask
        try:
            if (restored := recovery.restored) is not None:
                self.sent.update(restored.position)
                numbers = range(len(self.programs))
                restored._restore_into(
                    self.programs, [bool(self.flow.partitions(each)) for each in numbers]
                )
                self._heartbeat.begin()
            self.snapshots.begin(self)
        except BaseException:
            self.end()
            raise

    def _build(
        self,
        *,
        threading: Any,
        placement: Any,
        policy: Any,
        window: int,
        time_slice: float,
        markers: int,
        hot_keys: int,
    ) -> None:
        """Make programs, stages and lanes, and let the system know the run."""
        system, plan = self.system, self.plan
        runtime = system._runtime
        units = units_of(plan.steps, options.threading(threading, system.config))
        self.placement = options.placement(placement, system.config, units)
        heuristic = options.heuristic(policy, system.config, units)
        self.flow = flow = GraphFlow(
            heuristic or LastInPipeline(),
            options.power_of_two("window", window),
            options.short_time("time_slice", time_slice),
            checks.whole("markers", markers, 0, MOST, error=ConfigError),
            runtime.manual,
        )
        self.tally = DeadLetterTally(system.dead_letters, runtime.timers.now)
        self.context = copy_context()  # of functions that the caller's thread calls
        self.programs = self.context.run(plan.make_programs, self.tally)
        self.outputs = OutputBuffers(collected_by(self.programs))
        seed = getattr(system, "seed", None)  # the runs of a manual system are the same each time
        asks = False
        for program in self.programs:
            if isinstance(program, Answers):
                asks = asks or program.asks
                program.enter_system(runtime.event_loop, runtime.timers, runtime.team, seed)
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
                chains=heuristic is None and not runtime.manual,
            )
        except BaseException:
            close(self.programs)
            raise
        self._stalls = StallDetector(flow, runtime.team.workers, self.crew.shared_pools())
        self._closing = Lock()
        self._interrupted = False
        self.tally.lane = self.crew.lanes[0]
        self._closed = False
        self.life = Lifecycle(system, flow, self.crew, asks=asks)
        system._observer.add_graph(self)

    # --- rows -------------------------------------------------------------------------------------

    def send(
        self,
        entry: str,
        rows: Iterable[Any],
        *,
        timeout: float | None = None,
        is_given_up: Callable[[], bool] | None = None,
    ) -> None:
        """Send rows into the graph, in order. See `Run.send`.

        With `is_given_up`, rows are taken only when there is room for them, and AskCancelled is
        raised soon after it says yes, when those that were taken have gone in.
        """
        check_entry(entry, self.sent)
        number = list(self.sent).index(entry)
        deadline = options.deadline("send()", timeout)
        self.life.check_caller("send()")
        batches = Batches("send()", rows, self._size, is_given_up)
        sent = 0
        try:
            coming: Iterator[list[Any]] = batches
            if is_given_up is not None:
                coming = self._when_there_is_room(batches, deadline, is_given_up)
            for batch in coming:
                hold = self.lock.hold()
                try:
                    self._begin_sending(hold, deadline)
                    self.check_takes_rows(deadline)
                    self._await_room(deadline)
                    # Last: what was on its way has come by then. A batch that is taken only when
                    # there is room has waited already; if it is given up, no taker may come again.
                    while is_given_up is None and self._await_takers(hold, deadline):
                        self._await_room(deadline)
                    if self.flow.is_stopped:  # meanwhile
                        self.check_takes_rows(deadline)
                    self._admit({number: Batch(batch, self.sent[entry])})
                    self.sent[entry] += len(batch)
                finally:
                    hold.release()
                sent += len(batch)
                batches.taken = []
                self._heartbeat.begin()
                self._raise_interruption()
            if not sent:
                self.check_takes_rows(deadline)
        except BaseException as error:
            if error is not batches.raised and batches.raised is not None:
                error.__context__ = batches.raised  # which is not to be had from `rows` again
            with suppress(Exception):  # an exception of the caller's may refuse attributes
                error.sent, error.unsent = sent, batches.taken  # type: ignore[attr-defined]
            raise

    def _when_there_is_room(
        self, batches: Batches, deadline: float | None, is_given_up: Callable[[], bool]
    ) -> Iterator[list[Any]]:
        """Give each batch when there is room for it. Raises AskCancelled and RunTimeout."""
        while True:
            while not is_given_up():
                left = LOOK if deadline is None else max(0.0, deadline - time.monotonic())
                try:
                    self.await_room(min(LOOK, left))
                    break
                except RunTimeout:
                    if deadline is not None and time.monotonic() >= deadline:
                        raise
            else:
                raise AskCancelled(f"a send to {self!r} was given up")
            batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _begin_sending(self, hold: LockHold, deadline: float | None) -> None:
        if self.lock.locked() or self.snapshots.turn.locked():  # another sender waits for room
            self.life.check_wait("send()", "await asend()")
        if self.snapshots.turn.locked():
            turn = self.snapshots.turn.hold()
            try:
                if not self.acquire(turn, deadline):
                    raise RunTimeout(f"a snapshot of {self!r} is being taken")
            finally:
                turn.release()
        if not self.acquire(hold, deadline):
            raise RunTimeout(f"another sender waits for room in {self!r}, too")

    def _admit(self, batches: dict[int, Batch]) -> None:
        if not self._started:
            start(self.programs)
            self._started = True
        if self.crew.has_caller:
            self.context.run(self.admit_round, batches)
        else:
            self.admit_round(batches)

    def check_takes_rows(self, deadline: float | None) -> None:
        """Raise why the run takes no rows, if it does not: a failure when it is final."""
        self.system._runtime.refuse_fork()
        if not self.life.takes_rows:
            self._await_failure(deadline)
            raise self.life.why_no_rows()

    def _raise_interruption(self) -> None:
        """Raise what an operator on the caller's thread raised and is for the thread, as Ctrl-C."""
        failure = self.flow.failure if self.crew.has_caller and not self._interrupted else None
        cause = None if failure is None else failure.__cause__
        if cause is not None and not isinstance(cause, Exception):
            self._interrupted = True
            raise cause

    # --- room -------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """A batch may come in now, as far as other senders do not."""
        return self.flow.has_room and not self.outputs.is_any_full()

    def await_room(self, timeout: float) -> None:
        """Wait until a batch may come in. Raises RunTimeout, and why the run ended before."""
        deadline = time.monotonic() + timeout
        hold = self.lock.hold()
        try:
            self._begin_sending(hold, deadline)
            self._await_room(deadline)
            while self._await_takers(hold, deadline):
                self._await_room(deadline)
        finally:
            hold.release()
        self._await_failure(deadline)
        self.life.check_not_stopped()

    def _await_room(self, deadline: float | None) -> None:
        """Wait until a round can be admitted. The caller has the lock, so it is the next."""
        flow = self.flow
        self._rest(deadline)
        while not flow.has_room:
            self.life.check_wait("send()", "await asend()", for_operators=True)
            flow.note_held_back(True)
            try:
                # Many rounds at once: to wake a sender costs more than a round.
                in_time = self.wait(flow.admitted - flow.window + self._refill, deadline)
            finally:
                flow.note_held_back(False)
            if not in_time:
                raise RunTimeout(f"no room came in time in {self!r}: {self.slowest()}")
            if self.life.ended:
                raise self.life.why_ended(f"{self!r} ended meanwhile")

    def _rest(self, deadline: float | None) -> None:
        """Rest as an operator wants that the caller's thread runs: see throttle()."""
        while seconds := self.flow.callers_rest:
            if deadline is not None:
                if time.monotonic() >= deadline:
                    raise RunTimeout(f"a throttled operator of {self!r} rests for {seconds:.3g} s")
                seconds = min(seconds, max(0.0, deadline - time.monotonic()))
            time.sleep(min(seconds, LOOK))
            if self.flow.is_stopped:
                self._await_failure(deadline)
                raise self.life.why_ended(f"{self!r} was cancelled")

    def _await_takers(self, hold: LockHold, deadline: float | None) -> bool:
        """Wait until those who have results() have taken enough. Raises RunTimeout and RunEnded;
        RunError if they could not.

        True: the lock was let go for a snapshot meanwhile, which a taker may be waiting for.
        """
        let_go = False
        for buffer in self.outputs:
            if not buffer.is_full():
                continue
            while not buffer.has_room():
                if self.snapshots.turn.locked():
                    hold.release()
                    self._begin_sending(hold, deadline)
                    let_go = True
                self.check_takes_rows(deadline)
                why = f"{len(buffer)} outputs of {buffer.name!r} wait to be taken by results()"
                if deadline is not None and time.monotonic() >= deadline:
                    raise RunTimeout(f"no room came in time in {self!r}: {why}")
                self.life.check_wait("send()", f"await asend(), as {why}", for_others=why)
                if buffer.loop is threading.current_thread():
                    raise RunError(f"send() would block the event loop, on which {why}")
                if not self.system.is_run_here:
                    buffer.wait_for_taker(LOOK)
                elif not self.system._run_until(buffer.has_room, None):
                    raise RunError(f"{self!r} waits, and nothing is ready: {why}")
        return let_go

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
            if self.life.ended:  # by a cancel() that did not wait for an operator; no lane goes on
                raise self.life.why_ended(f"{self!r} was cancelled")
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
            self._stalls.look()
            system._runtime.refuse_fork()
            if system.is_closed:
                self._end_unfinished()  # what came so far is not the result
                raise RunEnded(f"{system!r} was stopped before {self!r} ended")

    def _await_failure(self, deadline: float | None) -> None:
        """Wait until a failure is final: till then an earlier row's may take its place."""
        if self.flow.failure is None or self.life.ended or self.system.is_closed:
            return
        if not self.wait(self.flow.admitted, deadline):
            raise RunTimeout(f"{self!r}, and has rounds on their way still: {self.slowest()}")

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self, types: Types = (), timeout: float | None = None) -> Snapshot:
        """Wait until no row is on its way, and take the state. See `Run.snapshot`."""
        codec = self.snapshots.recovery.codec_of(types)
        deadline = options.deadline("snapshot()", timeout)
        self.life.check_caller("snapshot()", by_any_caller=True)
        self.life.check_wait("snapshot()", "await asnapshot()", for_operators=True)
        return self.snapshots.take(self, codec, deadline)

    def cut(self, codec: Codec) -> Cut:
        """Take the states, while nothing changes them."""
        return cut_of(self.plan, self.programs, self.sent.copy(), self.outputs.rows(), codec)

    # --- what comes of them -----------------------------------------------------------------------

    def outlook(self) -> Outlook:
        """Look what may still come. Outputs that came before the end are there after this look."""
        flow = self.flow
        ended = self.life.ended  # first: what came before the end is seen by all later looks
        may_end = self.has_last_round or flow.failure is not None or flow.is_stopped
        done, admitted = flow.done, flow.admitted
        is_idle = done >= admitted
        return Outlook(done, is_idle, ended or (may_end and is_idle))

    def finish(self, timeout: float | None = None) -> Any:
        """Let the operators emit what they still hold, and return the results. See `Run.finish`."""
        deadline = options.deadline("finish()", timeout)
        self.life.check_caller("finish()")
        if not self.life.ended:
            self.life.check_wait("finish()", "await afinish()", for_operators=True)
        self.life.finishing = True
        hold = self.ending.hold()
        try:
            if not self.acquire(hold, deadline):
                raise RunTimeout(f"{self!r} did not end in {timeout} s: {self.slowest()}")
            if not self.life.ended:
                self._flush(deadline)
                if not self.wait(self.flow.admitted, deadline):
                    raise RunTimeout(f"{self!r} did not end in {timeout} s: {self.slowest()}")
            self.end()
        finally:
            hold.release()
        self._raise_interruption()
        self.life.check_not_stopped()
        return result_of(self.outputs.collected | self.outputs.rows())

    def _flush(self, deadline: float | None) -> None:
        hold = self.lock.hold()
        try:
            self._begin_sending(hold, deadline)
            if not self.has_last_round and not self.flow.is_stopped:
                sent = enumerate(self.sent.values())
                self._await_room(deadline)
                self._admit({entry: Batch([], rows, True) for entry, rows in sent})
                self.has_last_round = True
        finally:
            hold.release()

    # --- the end ----------------------------------------------------------------------------------

    def cancel(self, timeout: float = 5.0) -> None:
        """Drop what is on its way, and end. See `Run.cancel`."""
        deadline = time.monotonic() + checks.seconds("cancel()'s timeout", timeout)
        if self.life.ended:
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
                if self.acquire(hold, deadline) and not self.life.ended:
                    self.wait(self.flow.admitted, deadline)
            self.end()
        finally:
            hold.release()

    def end(self) -> None:
        """End, and let lanes and programs go."""
        if self.life.end():  # a waiter ends a run whose system was stopped; several may
            self._stalls.end()
            self.system._runtime.team.unfollow(self.flow)
            self.crew.lanes.stop()
            self.system._observer.note_end(self)
        self._close()
        self.snapshots.recovery.end()  # the directory of snapshots goes

    def _close(self, deadline: float = 0.0) -> None:
        """Let programs go; a later call does if an operator is in a row still at the deadline."""
        while not self._closed and self._may_touch_programs():
            if self.flow.is_at_work_here or time.monotonic() >= deadline:
                return
            time.sleep(HELP)
        with self._closing:
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
            entries = ", ".join(self.plan.entries)
            log.warning("a run was never finished", run=repr(self), entries=entries)
        self._end_unfinished()

    def _end_unfinished(self) -> None:
        if not self.flow.is_stopped:
            self.life.ends_with_system = True
        self.flow.cancel()
        self.end()

    def __del__(self, warn: Any = warnings.warn) -> None:  # at exit the module may be empty
        life = getattr(self, "life", None)
        if not (life is None or life.ended):
            if self.flow.admitted:
                warn(f"{self!r} was never finished", ResourceWarning, 2, self)
            self.flow.cancel()
            self.flow.leave_answers()  # before the collector empties the refs of lanes
            self._stalls.end()
            self.crew.lanes.stop()
            if not self.flow.admitted:  # no lane is in them
                close(self.programs)

    # --- what can be seen -------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """No lane is at work any more."""
        return self.life.ended

    def waits(self) -> list[WaitRecord]:
        """Say of each operator, and of the rows to come in, why nothing is done there."""
        return waits_of_operators(self.flow, self.plan.names_of_inputs())

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run, of each entry and of each operator so far, for JSON."""
        seconds = time.monotonic() - self.begun
        return figures_of(self.flow, self.tally, repr(self), seconds, [*self.sent.values()])

    def shape(self) -> GraphShape:
        """Return what the run looks like: entries, and operators by their numbers."""
        return self.plan.shape()

    def slowest(self) -> str:
        """Say what it waits for."""
        return what_it_waits_for(self.flow, self.programs)

    def __repr__(self) -> str:
        return repr(self.life)
