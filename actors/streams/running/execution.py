"""A running graph in an actor system: it takes rows, lets callers wait, and ends."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.core import checks
from callboard.core.errors import AskCancelled, ConfigError
from callboard.core.log import log
from callboard.observing.layout import GraphShape
from callboard.observing.wait_report import WaitRecord
from callboard.rows.batches import Batches
from callboard.scheduling.flow.heuristics import LastInPipeline
from callboard.streams.checks import MOST, check_entry
from callboard.streams.errors import RunError, RunTimeout
from callboard.streams.planning.plan import Plan, close, collected_by, result_of, start
from callboard.streams.programs.program import Batch
from callboard.streams.programs.rows.answers import Answers, UnorderedAnswers
from callboard.streams.running import options
from callboard.streams.running.build import deploy
from callboard.streams.running.call_lock import CallLock, LockHold
from callboard.streams.running.flow import MOST_ROWS, GraphFlow, RoundSizes
from callboard.streams.running.heartbeat import RoundTimer, add_round, beat
from callboard.streams.running.inspection import waits_of_operators
from callboard.streams.running.lifecycle import Lifecycle, ProgramCloser
from callboard.streams.running.output_buffer import OutputBuffers
from callboard.streams.running.row_counts import DeadLetterCounts
from callboard.streams.running.snapshotting import Snapshotting
from callboard.streams.running.statistics import figures_of
from callboard.streams.running.waiting import LOOK, Outlook, Waiting
from callboard.streams.snapshots.cut import Cut, cut_of
from callboard.streams.snapshots.snapshot import Snapshot
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types


class Execution:
    """A running graph, until `finish()` or `cancel()`.

    It takes rows in the order of their arrival. Any thread may call its methods. An actor that
    waits in one of them helps with the work.
    """

    life: Lifecycle

    def __init__(
        self,
        system: ActorSystem,
        plan: Plan,
        *,
        batch_size: int | None,
        restore: Any,
        **given: Any,
    ) -> None:
        if batch_size is not None:
            batch_size = checks.whole("batch_size", batch_size, 1, MOST, error=ConfigError)
        elif system._runtime.manual:  # where a seed decides all, and no clock does
            batch_size = MOST_ROWS
        self.batch_size = batch_size or MOST_ROWS  # at most
        self.system, self.plan = system, plan
        self.lock = CallLock()  # of senders
        self.ending = CallLock()  # of finish() and cancel()
        self.sent = dict.fromkeys(plan.entries, 0)
        self._started = False  # the first round is on its way
        self.has_last_round = False  # it is on its way
        self.snapshots = Snapshotting(restore, plan, system)
        try:
            self._build(**given)
        except BaseException:
            self.snapshots.end()
            raise
        self.experiment = threading.Lock()
        # An experiment slows the sender down here.
        self.admit_round: Callable[[dict[int, Batch]], bool] = self.flow.try_admit
        sizes = RoundSizes(self.flow, system.config.workers, self._has_processes)
        self._size = batch_size or sizes.next
        # A hand-over to a process costs too much for a whole window of small rounds.
        self._begins = self._has_processes and batch_size is None
        # A sender and a lane that both want the interpreter get it in turns of 5 ms. So the sender
        # fills the window, and leaves the interpreter to the lane until all is done.
        self._refill = max(1, self.flow.window // (2 if self.deployment.released else 1))
        timers = system._runtime.timers
        self._every = min([p.looks_every for p in self.programs if p.looks_every > 0], default=0.0)
        self._heartbeat = RoundTimer(timers, partial(beat, weakref.ref(self), self._every))
        extra = RoundTimer(timers, partial(add_round, weakref.ref(self)))
        for program in self.programs:
            if isinstance(program, UnorderedAnswers):
                program.add_round = extra.ask
        try:
            if (restored := self.snapshots.restored) is not None:
                self.sent.update(restored.position)
                divided = [bool(self.flow.partitions(at)) for at in range(len(self.programs))]
                restored._restore_into(self.programs, divided)
                self._begin_heartbeat()
            self.snapshots.begin(self)
        except BaseException:
            self.end()
            raise

    def _build(self, hot_keys: int, **given: Any) -> None:
        """Make programs, stages and lanes, and let the system know the run."""
        system, plan = self.system, self.plan
        runtime = system._runtime
        settings = options.settings(plan, system.config, **given)
        self.placement = settings.placement
        self.flow = flow = GraphFlow(
            settings.heuristic or LastInPipeline(),
            settings.window,
            settings.time_slice,
            settings.markers,
            runtime.manual,
        )
        self.row_counts = DeadLetterCounts(system.dead_letters, runtime.timers.now)
        self.context = copy_context()  # of functions that the caller's thread calls
        segments: Mapping[int, Any] = {}
        reasons: Mapping[int, str] = {}
        if system.config.processes and not runtime.manual:
            from callboard.streams.processes.placing import placed_in_processes

            plan, segments, reasons = placed_in_processes(system, plan, settings.pipelines)
        self._has_processes = bool(segments)
        self.programs = self.context.run(plan.make_programs, self.row_counts)
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
            chains = settings.heuristic is None and not runtime.manual
            self.deployment = deploy(system, flow, plan, self.programs, settings, chains=chains)
            self.deployment.note_processes(segments, reasons)
        except BaseException:
            close(self.programs)
            raise
        self._interrupted = False
        self.row_counts.lane = self.deployment.lanes[0]
        self.life = life = Lifecycle(system, flow, self.deployment, asks=asks)
        end = weakref.WeakMethod(self._end_unfinished)
        self.waiting = Waiting(system, flow, self.deployment, self.programs, life, end)
        self._closer = ProgramCloser(flow, self.programs)
        system._observer.add_graph(self)

    def _begin_heartbeat(self) -> None:
        if self._every > 0:
            self._heartbeat.ask(self._every)

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

        With `is_given_up`, rows are taken only when there is room for them. Soon after it returns
        True, AskCancelled is raised; the rows that were taken have gone in by then.
        """
        if type(entry) is not str or entry not in self.sent:
            check_entry(entry, self.sent)
        number = list(self.sent).index(entry)
        deadline = None if timeout is None else options.deadline("send()", timeout)
        self.life.check_caller("send()")
        batches = Batches("send()", rows, self._size, is_given_up)
        sent = 0
        try:
            coming: Iterator[list[Any]] = batches
            if is_given_up is not None:
                coming = self._when_there_is_room(batches, deadline, is_given_up)
            for batch in coming:
                if sent and self._begins:
                    lead = 16 * self.system.config.workers
                    self._begins = self.waiting.for_first_rounds(lead, deadline)
                hold = self.lock.hold()
                try:
                    self._begin_sending(hold, deadline)
                    self.check_takes_rows(deadline)
                    # A batch that is taken only when there is room has waited for takers already.
                    # If it is given up, no taker may come again.
                    self._await_room(hold, deadline, for_takers=is_given_up is None)
                    if self.flow.is_stopped:  # by now
                        self.check_takes_rows(deadline)
                    self._admit({number: Batch(batch, self.sent[entry])})
                    self.sent[entry] += len(batch)
                finally:
                    hold.release()
                sent += len(batch)
                batches.taken = []
                self._begin_heartbeat()
                self._raise_interruption()
            if not sent:
                self.check_takes_rows(deadline)
        except BaseException as error:
            if error is not batches.raised and batches.raised is not None:
                error.__context__ = batches.raised  # `rows` would not raise it again
            with suppress(Exception):  # a user's exception may refuse attributes
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
                raise AskCancelled(f"a send to {self!r} was cancelled")
            batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _begin_sending(self, hold: LockHold, deadline: float | None) -> None:
        """Take the lock of senders, once no snapshot waits for it."""
        if not self.snapshots.turn.locked() and hold.acquire():
            return
        self.life.check_wait("send()", "await asend()")  # another sender waits for room
        if self.snapshots.turn.locked():
            turn = self.snapshots.turn.hold()
            try:
                if not self.waiting.acquire(turn, deadline):
                    raise RunTimeout(f"a snapshot of {self!r} is being taken")
            finally:
                turn.release()
        if not self.waiting.acquire(hold, deadline):
            raise RunTimeout(f"another sender is already waiting for room in {self!r}")

    def _admit(self, batches: dict[int, Batch]) -> None:
        if not self._started:
            start(self.programs)
            self._started = True
        if self.deployment.has_caller:
            self.context.run(self.admit_round, batches)
        else:
            self.admit_round(batches)

    def check_takes_rows(self, deadline: float | None) -> None:
        """Raise the reason if the run takes no rows. A failure is raised once it is final."""
        self.system._runtime.refuse_fork()
        if not self.life.takes_rows:
            self.waiting.for_failure(deadline)
            raise self.life.why_no_rows()

    def _raise_interruption(self) -> None:
        """Raise what an operator on the caller's thread raised for that thread, such as Ctrl-C."""
        if self._interrupted or not self.deployment.has_caller:
            return
        cause = getattr(self.flow.failure, "__cause__", None)
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
            self._await_room(hold, deadline, for_takers=True)
        finally:
            hold.release()
        self.waiting.for_failure(deadline)
        self.life.check_not_stopped()

    def _await_room(self, hold: LockHold, deadline: float | None, *, for_takers: bool) -> None:
        """Wait until a round can be admitted, and `for_takers` until outputs have been taken.

        The caller has the lock, so its round is the next.
        """
        self._await_free_round(deadline)
        # Last: the outputs of rounds on their way have come by then.
        while for_takers and self._await_takers(hold, deadline):
            self._await_free_round(deadline)

    def _await_free_round(self, deadline: float | None) -> None:
        flow = self.flow
        self._rest(deadline)
        while not flow.has_room:
            self.life.check_wait("send()", "await asend()", for_operators=True)
            flow.note_held_back(True)
            try:
                # Many rounds at once: to wake a sender costs more than a round.
                in_time = self.waiting.until(flow.admitted - flow.window + self._refill, deadline)
            finally:
                flow.note_held_back(False)
            if not in_time:
                raise RunTimeout(
                    f"no room became free in time in {self!r}: {self.waiting.slowest()}"
                )
            if self.life.ended:
                raise self.life.why_ended(f"{self!r} has ended")

    def _rest(self, deadline: float | None) -> None:
        """Rest as long as an operator on the caller's thread asks for: see throttle()."""
        while seconds := self.flow.callers_rest:
            if deadline is not None:
                if time.monotonic() >= deadline:
                    raise RunTimeout(f"a throttled operator of {self!r} rests for {seconds:.3g} s")
                seconds = min(seconds, max(0.0, deadline - time.monotonic()))
            time.sleep(min(seconds, LOOK))
            if self.flow.is_stopped:
                self.waiting.for_failure(deadline)
                raise self.life.why_ended(f"{self!r} was cancelled")

    def _await_takers(self, hold: LockHold, deadline: float | None) -> bool:
        """Wait until takers of results() have made room. Raises RunTimeout and RunEnded, and
        RunError if they cannot.

        True: the lock was free in between, for a snapshot that a taker may be waiting for.
        """
        let_go = False
        for buffer in self.outputs.buffers.values():
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
                    raise RunTimeout(f"no room became free in time in {self!r}: {why}")
                self.life.check_wait("send()", f"await asend(), as {why}", for_others=why)
                if buffer.loop is threading.current_thread():
                    raise RunError(f"send() would block the event loop, on which {why}")
                if not self.system._is_run_here:
                    buffer.wait_for_taker(LOOK)
                elif not self.system._run_until(buffer.has_room, None):
                    raise RunError(f"{self!r} waits, and nothing is ready: {why}")
        return let_go

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self, types: Types = (), timeout: float | None = None) -> Snapshot:
        """Wait until no row is in flight, and take the state. See `Run.snapshot`."""
        codec = self.snapshots.codec_of(types)
        deadline = options.deadline("snapshot()", timeout)
        self.life.check_caller("snapshot()", by_any_caller=True)
        self.life.check_wait("snapshot()", "await asnapshot()", for_operators=True)
        return self.snapshots.take(self, codec, deadline)

    def cut(self, codec: Codec) -> Cut:
        """Take the states, while nothing changes them."""
        return cut_of(self.plan, self.programs, self.sent.copy(), self.outputs.rows(), codec)

    # --- results ----------------------------------------------------------------------------------

    def outlook(self) -> Outlook:
        """Tell what may still come. When this returns, outputs from before the end are there."""
        flow = self.flow
        ended = self.life.ended  # read first: all later reads see what came before the end
        may_end = self.has_last_round or flow.failure is not None or flow.is_stopped
        done, admitted = flow.done, flow.admitted
        is_idle = done >= admitted
        return Outlook(done, is_idle, ended or (may_end and is_idle))

    def finish(self, timeout: float | None = None) -> Any:
        """Flush the operators, and return the results. See `Run.finish`."""
        deadline = options.deadline("finish()", timeout)
        self.life.check_caller("finish()")
        if not self.life.ended:
            self.life.check_wait("finish()", "await afinish()", for_operators=True)
        self.life.finishing = True
        hold = self.ending.hold()
        try:
            in_time = self.waiting.acquire(hold, deadline)
            if in_time and not self.life.ended:
                self._flush(deadline)
                in_time = self.waiting.for_all(deadline)
            if not in_time:
                why = self.waiting.slowest()
                raise RunTimeout(f"{self!r} did not end in {timeout} s: {why}")
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
                self._await_room(hold, deadline, for_takers=False)
                self._admit({entry: Batch([], rows, True) for entry, rows in sent})
                self.has_last_round = True
        finally:
            hold.release()

    # --- the end ----------------------------------------------------------------------------------

    def cancel(self, timeout: float = 5.0) -> None:
        """Drop the rows in flight, and end. See `Run.cancel`."""
        deadline = time.monotonic() + checks.seconds("cancel()'s timeout", timeout)
        if self.life.ended:
            self._closer.close(deadline)
            return
        self.flow.cancel()  # first: a finish() that has the lock waits for what this drops
        for lane in self.deployment.lanes:
            if lane.is_alive:
                lane.tell(0)  # it may rest
        if self.flow.is_at_work_here:  # where a call from elsewhere ends it, as after a failure
            return
        hold = self.ending.hold()
        try:
            with suppress(RunError):  # another call ended it, or its system was stopped
                if self.waiting.acquire(hold, deadline) and not self.life.ended:
                    self.waiting.for_all(deadline)
            self.end()
        finally:
            hold.release()

    def end(self) -> None:
        """End, and let lanes and programs go."""
        if self.life.end():  # a waiter ends a run whose system was stopped; several may
            self.waiting.stalls.end()
            self.system._runtime.team.unfollow(self.flow)
            self.deployment.lanes.stop()
            self.system._observer.note_end(self)
        self._closer.close()
        self.snapshots.end()  # lets the directory of snapshots go

    def is_anybody_at_work(self) -> bool:
        """Tell whether an operator is in the middle of a row."""
        return self._closer.is_anybody_at_work()

    def leave_waits(self) -> None:
        """Cancel the run if its threads wait for answers: its system stops. Any thread."""
        if any(isinstance(each, Answers) and each.holds_thread for each in self.programs):
            self.flow.cancel()

    def end_with_system(self) -> None:
        """End because the system has stopped: close files and sinks. Any thread."""
        by_with = self.system._shutdown.leave_by is not None  # and not by stop()
        if by_with and self.flow.admitted and not self.flow.is_stopped:
            entries = ", ".join(self.plan.entries)
            log.warning("a run was never finished", run=repr(self), entries=entries)
        self._end_unfinished()

    def _end_unfinished(self) -> None:
        """Drop the rows in flight, and end, because the system has stopped."""
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
            self.waiting.stalls.end()
            self.deployment.lanes.stop()
            if not self.flow.admitted:  # no lane is in them
                close(self.programs)

    # --- for observers ----------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """No lane is at work any more."""
        return self.life.ended

    def waits(self) -> list[WaitRecord]:
        """Say why each operator, and the entries, are waiting."""
        return waits_of_operators(self.flow, self.plan.names_of_inputs())

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run, of each entry and of each operator so far, for JSON."""
        seconds = time.monotonic() - self.begun
        return figures_of(self.flow, self.row_counts, repr(self), seconds, [*self.sent.values()])

    def shape(self) -> GraphShape:
        """Return the picture of the graph: entries, and operators by their numbers."""
        return self.plan.shape()

    def __repr__(self) -> str:
        return repr(self.life)
