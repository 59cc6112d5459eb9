"""Admission of rows into a graph at work: in which order, and when there is room."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.core import checks
from callboard.core.errors import AskCancelled, ConfigError
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.rows.batches import Batches
from callboard.streams.checks import MOST, check_entry
from callboard.streams.errors import RunError, RunTimeout
from callboard.streams.planning.plan import Plan, collected_by, result_of, start
from callboard.streams.programs.program import Batch
from callboard.streams.programs.round_sizes import MOST_ROWS, RoundSizes
from callboard.streams.programs.rows.sinks import Collect
from callboard.streams.programs.rows.unordered_answers import UnorderedAnswers
from callboard.streams.programs.saved import Columns
from callboard.streams.running.callers import CallLock, LockHold
from callboard.streams.running.execution import LOOK, Execution
from callboard.streams.running.heartbeat import ExtraRounds, Heartbeat
from callboard.streams.running.results import Outlook
from callboard.streams.running.untaken import Untaken
from callboard.streams.snapshots.cut import Cut
from callboard.streams.snapshots.recovery import Recovery
from callboard.streams.snapshots.snapshot import Snapshot
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types


class Admission(Execution):
    """An execution that takes rows, in the order of their arrival, and says what came of them."""

    def __init__(
        self,
        system: ActorSystem,
        plan: Plan,
        *,
        batch_size: int | None,
        restore: Any,
        **options: Any,
    ) -> None:
        if batch_size is not None:
            batch_size = checks.whole("batch_size", batch_size, 1, MOST, error=ConfigError)
        elif system._runtime.manual:  # where a seed decides all, and no clock does
            batch_size = MOST_ROWS
        self.batch_size = batch_size or MOST_ROWS  # at most
        self.lock = CallLock()  # of senders
        self.turn = CallLock()  # of a snapshot, which senders let go first
        self.saving = CallLock()  # of a snapshot, until it is encoded: states are noted for one
        self.plan = plan
        self.sent = dict.fromkeys(plan.entries, 0)
        self.finishing = False  # finish() was called
        self._started = False  # the first round is on its way
        self._flushed = False  # the last round is on its way
        self._untaken: dict[str, Untaken[Any]] = {}  # by the names of collectors, of results()
        self._recovery = Recovery(restore, plan, system)
        try:
            super().__init__(system, plan, **options)
        except BaseException:
            self._recovery.end()
            raise
        self.experiment = threading.Lock()
        # An experiment slows the sender down here.
        self.admit_round: Callable[[dict[int, Batch]], bool] = self.flow.try_admit
        self._size = batch_size or RoundSizes(self.flow, system.config.workers).next
        self._collected = collected_by(self.programs)
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
            self._go_on()
        except BaseException:
            self.end()
            raise

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run, of each entry and of each operator so far, for JSON."""
        return super().figures() | {"entries": [*self.sent.values()]}

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the graph's entries."""
        return tuple(self.sent)

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
        self.refuse_own_operators("send")
        check_entry(entry, self.sent)
        number = list(self.sent).index(entry)
        deadline = _deadline("send()", timeout)
        self.refuse_other_callers("send")
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
                    self._refuse_if_ended(deadline)
                    self._await_room(deadline)
                    # Last: what was on its way has come by then. A batch that is taken only when
                    # there is room has waited already; if it is given up, no taker may come again.
                    while is_given_up is None and self._await_takers(hold, deadline):
                        self._await_room(deadline)
                    if self.flow.is_stopped:  # meanwhile
                        self._refuse_if_ended(deadline)
                    self._admit({number: Batch(batch, self.sent[entry])})
                    self.sent[entry] += len(batch)
                finally:
                    hold.release()
                sent += len(batch)
                batches.taken = []
                self._heartbeat.begin()
                self.raise_interruption()
            if not sent:
                self._refuse_if_ended(deadline)
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
        if self.lock.locked() or self.turn.locked():  # another sender waits for room
            self.refuse_loop("send()", "await asend()")
        if self.turn.locked():
            turn = self.turn.hold()
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

    def _refuse_if_ended(self, deadline: float | None) -> None:
        self.system._runtime.refuse_fork()
        self.await_failure(deadline)
        if self.ended or self.finishing or self.flow.is_stopped or self.system.is_closed:
            cancelled = "was cancelled, and " if self.flow.is_stopped else ""
            raise self.why_ended(f"{self!r} {cancelled}takes no more rows")

    # --- room -------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """A batch may come in now, as far as other senders do not."""
        full = (untaken.is_full() for untaken in self._untaken.values())
        return self.flow.has_room and not any(full)

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
        self.await_failure(deadline)
        self.refuse_if_stopped()

    def _await_room(self, deadline: float | None) -> None:
        """Wait until a round can be admitted. The caller has the lock, so it is the next."""
        flow = self.flow
        self._rest(deadline)
        while not flow.has_room:
            self.refuse_loop("send()", "await asend()")
            self.refuse_worker("send()", "await asend()")
            flow.note_held_back(True)
            try:
                # Many rounds at once: to wake a sender costs more than a round.
                in_time = self.wait(flow.admitted - flow.window + self._refill, deadline)
            finally:
                flow.note_held_back(False)
            if not in_time:
                raise RunTimeout(f"no room came in time in {self!r}: {self.slowest()}")
            if self.ended:
                raise self.why_ended(f"{self!r} ended meanwhile")

    def _rest(self, deadline: float | None) -> None:
        """Rest as an operator wants that the caller's thread runs: see throttle()."""
        while seconds := self.flow.callers_rest:
            if deadline is not None:
                if time.monotonic() >= deadline:
                    raise RunTimeout(f"a throttled operator of {self!r} rests for {seconds:.3g} s")
                seconds = min(seconds, max(0.0, deadline - time.monotonic()))
            time.sleep(min(seconds, LOOK))
            if self.flow.is_stopped:
                self.await_failure(deadline)
                raise self.why_ended(f"{self!r} was cancelled")

    def _await_takers(self, hold: LockHold, deadline: float | None) -> bool:
        """Wait until those who have results() have taken enough. Raises RunTimeout and RunEnded;
        RunError if they could not.

        True: the lock was let go for a snapshot meanwhile, which a taker may be waiting for.
        """
        let_go = False
        for untaken in self._untaken.values():
            if not untaken.is_full():
                continue
            while not untaken.has_room():
                if self.turn.locked():
                    hold.release()
                    self._begin_sending(hold, deadline)
                    let_go = True
                self._refuse_if_ended(deadline)
                why = f"{len(untaken)} outputs of {untaken.name!r} wait to be taken by results()"
                if deadline is not None and time.monotonic() >= deadline:
                    raise RunTimeout(f"no room came in time in {self!r}: {why}")
                self.refuse_to_wait("send()", why)
                self.refuse_loop("send()", f"await asend(), as {why}")
                if untaken.loop is threading.current_thread():
                    raise RunError(f"send() would block the event loop, on which {why}")
                if not self.system.is_run_here:
                    untaken.wait_for_taker(LOOK)
                elif not self.system._run_until(untaken.has_room, None):
                    raise RunError(f"{self!r} waits, and nothing is ready: {why}")
        return let_go

    # --- snapshots --------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Go on with a snapshot, if there is one, and see to it that others are taken."""
        restored = self._recovery.restored
        if restored is not None:
            self.sent.update(restored.position)
            divided = [bool(self.flow.partitions(number)) for number in range(len(self.programs))]
            restored.give(self.programs, divided)
            self._heartbeat.begin()
        if self._recovery.begin(partial(take_snapshot, weakref.ref(self))):
            # An operator that cannot be saved is known before there are rows.
            self._cut(self._recovery.codec_of(())).encoded(0)

    def snapshot(self, types: Types = (), timeout: float | None = None) -> Snapshot:
        """Wait until no row is on its way, and take the state. See `Run.snapshot`."""
        codec = self._recovery.codec_of(types)
        self.refuse_own_operators("snapshot")
        deadline = _deadline("snapshot()", timeout)
        self.refuse_loop("snapshot()", "await asnapshot()")
        self.refuse_worker("snapshot()", "await asnapshot()")
        saving = self.saving.hold()
        try:
            if not self.acquire(saving, deadline):
                raise RunTimeout(f"another snapshot of {self!r} is being encoded")
            cut, pause, rounds = self._cut_in_a_pause(codec, deadline)
            snapshot = cut.encoded(pause)
        finally:
            saving.release()
        self._recovery.save(snapshot, rounds)
        return snapshot

    def _cut_in_a_pause(self, codec: Codec, deadline: float | None) -> tuple[Cut, float, int]:
        """Return a cut, how long senders waited for it, and behind how many rounds it is."""
        turn, hold = self.turn.hold(), self.lock.hold()
        try:
            if not (self.acquire(turn, deadline) and self.acquire(hold, deadline)):
                raise RunTimeout(f"a sender waits for room in {self!r}: {self.slowest()}")
            self._refuse_if_ended(deadline)
            if not self.wait(self.flow.admitted, deadline):
                raise RunTimeout(f"rows are on their way in {self!r}: {self.slowest()}")
            self._refuse_if_ended(deadline)
            begun = time.monotonic()
            return self._cut(codec), time.monotonic() - begun, self.flow.admitted
        finally:
            hold.release()
            turn.release()

    def _cut(self, codec: Codec) -> Cut:
        """Take the states, while nothing changes them."""
        cut = Cut(codec, self.sent.copy())
        left = {name: untaken.rows() for name, untaken in self._untaken.items()}
        try:
            for step, program in zip(self.plan.steps, self.programs, strict=True):
                collected = left.get(program.name) if isinstance(program, Collect) else None
                cut.take(step, program, None if collected is None else [(), Columns([collected])])
            cut.take_kept()
        except BaseException:
            cut.let_go()
            raise
        return cut

    def end(self) -> None:
        """End, and let the directory of snapshots go."""
        super().end()
        self._recovery.end()

    # --- what comes of them -----------------------------------------------------------------------

    def outlook(self) -> Outlook:
        """Look what may still come. Outputs that came before the end are there after this look."""
        flow = self.flow
        ended = self.ended  # first: what came before the end is seen by all later looks
        may_end = self._flushed or flow.failure is not None or flow.is_stopped
        done, admitted = flow.done, flow.admitted
        is_idle = done >= admitted
        return Outlook(done, is_idle, ended or (may_end and is_idle))

    def untaken(self, name: str | None) -> Untaken[Any]:
        """Return what the collector of this name, or the only one, has for results()."""
        collected = self._collected
        if not collected:
            raise RunError(f"results() are what a collect() gets, and {self!r} has none")
        if name is None and len(collected) == 1:
            (name,) = collected
        if not isinstance(name, str) or name not in collected:
            has = ", ".join(map(repr, collected))
            raise RunError(
                f"results() wants the name of one of the collectors {has}, not {safe_repr(name)}"
            )
        with self._claim:
            found = self._untaken.get(name)
            if found is None:
                found = Untaken(name, collected[name], None)
                self._untaken = {**self._untaken, name: found}  # a sender may be going through it
        return found

    def finish(self, timeout: float | None = None) -> Any:
        """Let the operators emit what they still hold, and return the results. See `Run.finish`."""
        self.refuse_own_operators("finish")
        deadline = _deadline("finish()", timeout)
        self.refuse_other_callers("finish")
        if not self.ended:
            self.refuse_loop("finish()", "await afinish()")
            self.refuse_worker("finish()", "await afinish()")
        self.finishing = True
        hold = self.ending.hold()
        try:
            if not self.acquire(hold, deadline):
                raise RunTimeout(f"{self!r} did not end in {timeout} s: {self.slowest()}")
            if not self.ended:
                self._flush(deadline)
                if not self.wait(self.flow.admitted, deadline):
                    raise RunTimeout(f"{self!r} did not end in {timeout} s: {self.slowest()}")
            self.end()
        finally:
            hold.release()
        self.raise_interruption()
        self.refuse_if_stopped()
        left = {name: untaken.rows() for name, untaken in self._untaken.items()}
        return result_of(self._collected | left)

    def _flush(self, deadline: float | None) -> None:
        hold = self.lock.hold()
        try:
            self._begin_sending(hold, deadline)
            if not self._flushed and not self.flow.is_stopped:
                sent = enumerate(self.sent.values())
                self._await_room(deadline)
                self._admit({entry: Batch([], rows, True) for entry, rows in sent})
                self._flushed = True
        finally:
            hold.release()


def beat(reference: weakref.ref[Admission]) -> bool | None:
    """Admit a round without rows, unless a sender is about to. See Heartbeat."""
    run = reference()
    if run is None or run.crew.has_caller:  # whose operators no other thread may run
        return None
    hold = run.lock.hold()
    try:
        if not hold.acquire():
            return True
        if run.ended or run.finishing or run.flow.is_stopped:
            return None
        busy = run.flow.done < run.flow.admitted
        run.flow.try_admit({})
        return busy
    finally:
        hold.release()


def add_round(reference: weakref.ref[Admission]) -> bool:
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
        if run.ended or run._flushed or run.flow.is_stopped:
            return True
        return bool(run.flow.try_admit({}))
    finally:
        hold.release()


def take_snapshot(reference: weakref.ref[Admission]) -> bool:
    """Take a snapshot, if rows have come since the last one. False: the run is over."""
    run = reference()
    if run is None or run.ended or run.finishing:
        return False
    if run.flow.admitted == run._recovery.saved:
        return True
    try:
        run.snapshot()
    except BaseException as error:  # no thread of a caller's is here that it could end
        if run.ended or run.finishing or run.flow.is_stopped:
            return False
        log.error("a snapshot failed", run=repr(run), exc_info=error)
    return True


def _deadline(call: str, timeout: float | None) -> float | None:
    seconds = checks.timeout(f"{call}'s timeout", timeout)
    return None if seconds is None else time.monotonic() + seconds
