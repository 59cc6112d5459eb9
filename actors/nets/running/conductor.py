"""The actor of a run: it lets records in, carries them, and has slow boxes called elsewhere."""

from __future__ import annotations

import math
import sys
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from callboard._inside.answers.future import Future
from callboard.actor import Actor
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_repr
from callboard.nets.errors import NetEnded, NetError
from callboard.nets.kernel.calls import records_left
from callboard.nets.kernel.nodes import sweep
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.running.box_workers import Callers
from callboard.nets.running.failing import (
    RunFailed,
    as_record_error,
    effect_of,
    make_variant,
    run_error,
)
from callboard.nets.running.messages import (
    Ask,
    Asked,
    CallEnded,
    CallOutput,
    CallTimeout,
    Cancel,
    Close,
    Finish,
    GiveBack,
    GoOn,
    Limit,
    Look,
    RetryCall,
    RunDropped,
    SentRows,
    Sweep,
    Take,
    Withdraw,
)
from callboard.nets.running.net_state import NetState, seen_at
from callboard.nets.running.reports import NetStatistics

HOPS = 20_000  # of a turn; then other actors of the worker have theirs
_GO_ON = GoOn()


class Conductor(Actor[Any]):
    """Has the carrier of a run. All of it happens in turns of this actor, so nothing has a lock.

    Outputs of boxes that run elsewhere come first, then records that are sent. Both wait until
    the carrier has no record on its stack, so no record is overtaken on its way from one entity
    to the next.
    """

    def __init__(self, state: NetState, window: int) -> None:
        self.net_state = state
        self.window = window
        runtime = self.system._runtime
        self.clock = runtime.timers.now
        self.callers = Callers(self, manual=runtime.manual)
        self.carrier = state.carrier
        self.carrier.failed = self._fail
        self.carrier.clock = self.clock
        self.carrier.most_elsewhere = window
        self.begun = False
        self.goes_on = False  # a GoOn is on its way
        self.waiting: deque[tuple[SentRows, Future[None]]] = deque()
        self.events: deque[CallOutput | CallEnded] = deque()
        self.asked: set[Asked] = set()
        self.takers: deque[Take] = deque()
        self.limits: dict[Limit, int] = {}
        self.finishers: dict[Finish, Future[Any]] = {}
        self.finished: list[Any] | None = None  # the outputs that they have
        self.is_closed = False  # no more records are taken
        self.is_over = False
        self.is_dropped = False  # nobody can ask for anything any more
        self.failure: NetError | None = None
        self.timers: dict[Any, Any] = {}
        self.sweeps_at = math.inf
        self.seen = state.seen

    # --- messages --------------------------------------------------------------------------------

    def receive(self, message: Any) -> Any:
        """Do what a message says, then carry what there is. On a worker's thread."""
        handler = self._HANDLERS.get(type(message))
        answer = None if handler is None else handler(self, message)
        if type(message) is not Look:
            self._advance()
        return answer

    def _note_go_on(self, _: GoOn) -> None:
        self.goes_on = False

    def _add_limit(self, limit: Limit) -> None:
        self.limits[limit] = limit.limit
        self._apply_limits()

    def _add_taker(self, take: Take) -> None:
        self.takers.append(take)

    def _take_back(self, message: GiveBack) -> None:
        self.carrier.outputs = message.outputs + self.carrier.outputs
        self.seen.put_out -= len(message.outputs)

    def _close(self, _: Close) -> None:
        self.is_closed = True

    def _cancel(self, _: Cancel) -> None:
        self._end(NetEnded("the run was cancelled"))

    def _drop(self, _: RunDropped) -> None:
        self.is_dropped = self.is_closed = True
        self._apply_limits()
        if self.is_over:
            self._leave()

    def _withdraw(self, message: Withdraw) -> None:
        """Forget a request."""
        match message.request:
            case SentRows() as rows:
                rows.withdrawn = True
                for each in [each for each in self.waiting if each[0] is rows]:
                    self.waiting.remove(each)
                    each[1].set_result(None)
            case Limit() as limit:
                self.limits.pop(limit, None)
                self._apply_limits()
            case Take() as take:
                if take in self.takers:
                    self.takers.remove(take)
                    take.answer.set_result([])
            case Finish() as finish:
                self._unfinish(finish)

    def _wait_for_room(self, rows: SentRows) -> Future[None]:
        answer: Future[None] = Future()
        if self.is_over or self.is_closed:
            self._refuse(rows, answer, self.failure or NetEnded("the run takes no more records"))
        else:
            self.waiting.append((rows, answer))
        return answer

    def _refuse(self, rows: SentRows, answer: Future[None], error: NetError) -> None:
        """Take no more of these rows: an error for the sender, or dead letters if nobody waits."""
        if rows.told and not rows.withdrawn:
            for row in rows.rows[rows.sent :]:
                self._dead_letter(row, "stopped", error)
        answer.set_exception(error._again())

    def _dead_letter(self, record: Any, reason: str, error: NetError | None = None) -> None:
        self.system.dead_letters.post(record, self.ref, None, reason, error)

    def _ask(self, ask: Ask) -> Future[Any]:
        asked = Asked([] if ask.traced else None)
        if self.is_over or self.is_closed:
            asked.answer.set_exception(self.failure or NetEnded("the run takes no more records"))
        else:
            self.asked.add(asked)
            self.waiting.append((SentRows([ask.record], asked), Future()))
        return asked.answer

    def _finish(self, finish: Finish) -> Any:
        self.is_closed = True
        self.finishers[finish] = Future()
        self._apply_limits()
        if self.is_over:
            self._answer_finishers()
        return self.finishers[finish]

    def _apply_limits(self) -> None:
        """Set how many outputs may wait. Those that are left for finish() come all at once."""
        limits = () if self.finishers or self.is_dropped else self.limits.values()
        self.carrier.most_outputs = min(limits, default=sys.maxsize)

    def _unfinish(self, finish: Finish) -> None:
        """One who waited for the end does so no more: the outputs are the next one's."""
        has_waited = self.finishers.pop(finish).set_result([])
        if not has_waited and not self.finishers and self.finished is not None:
            self.seen.put_out -= len(self.finished)
            self.carrier.outputs, self.finished = self.finished, None

    def on_failure(self, error: BaseException, message: Any) -> None:
        """Fail what waits by an error that is no box's, but of the run itself."""
        made = NetError(f"the run failed at {type(message).__name__}: {safe_repr(error)}")
        made.__cause__ = error
        self._end(made)

    def on_stop(self) -> None:
        """Fail what waits: the system is stopping."""
        self._end(NetEnded("the run's system was stopped"))
        self._dead_letter_outputs()
        self.net_state.on_end()

    def _leave(self) -> None:
        """Stop this actor: its user is gone, and nothing more can come."""
        self._dead_letter_outputs()
        self.stop()

    def _dead_letter_outputs(self) -> None:
        outputs, self.carrier.outputs = self.carrier.outputs, []
        for output in outputs:
            self._dead_letter(output, "untaken")

    # --- carrying --------------------------------------------------------------------------------

    def _advance(self) -> None:
        if self.is_over:
            self._hand_out()
            return
        carrier = self.carrier
        carrier.now = self.clock()
        until = carrier.hops + HOPS
        try:
            if not self.begun:
                self.begun = True
                self.net_state.begin()
            while carrier.hops < until:
                if carrier.run(until - carrier.hops):
                    break
                self._begin_calls()
                if not carrier.is_idle:  # the outputs have to be taken first
                    break
                if self.events:
                    self._handle(self.events.popleft())
                elif not (self.waiting and self._let_in(until)):
                    break
        except RunFailed as failed:
            self._dead_letter(failed.record.as_dict(), "failed", failed.error)
            self._end(failed.error, failed.record)
            return
        finally:
            if carrier.is_idle:
                sweep(carrier)
        self._begin_calls()
        if carrier.hops >= until and not self.goes_on:
            self.goes_on = True
            self.ref.tell(_GO_ON)
        self._hand_out()
        if carrier.next_expiry < self.sweeps_at:
            self._sweep_later()
        if self._is_done():
            self._end(None)

    def _is_done(self) -> bool:
        return (
            self.is_closed
            and not self.waiting
            and not self.events
            and self.carrier.is_empty
            and not self.carrier.elsewhere
        )

    def _let_in(self, until: int) -> bool:
        """Let in records of those that wait, and tell whether any came."""
        rows, answer = self.waiting[0]
        carrier, before = self.carrier, rows.sent
        if rows.withdrawn:
            self.waiting.popleft()
            return True
        try:
            carrier.take(self.net_state.entry, rows.rows, rows.sent, self.window, until, rows.asked)
        except Exception as raised:
            error = as_record_error(raised)
            rows.sent = carrier.taken
            if rows.told:  # the other rows are not to blame
                self._dead_letter(rows.rows[rows.sent], "refused", error)
                rows.sent += 1
                return True
            self.waiting.popleft()
            if rows.asked is not None:
                rows.asked.error = error
                carrier.answered.append(rows.asked)
            answer.set_exception(error)
            return True
        finally:
            rows.sent = max(rows.sent, carrier.taken)
            self.seen.sent += carrier.taken - before
        if rows.sent == len(rows.rows):
            self.waiting.popleft()
            answer.set_result(None)
            return True
        return rows.sent > before

    def _hand_out(self) -> None:
        """Give outputs to those that wait for them."""
        carrier = self.carrier
        if carrier.answered:
            for asked in carrier.answered:
                self.asked.discard(asked)
                if asked.error is not None:
                    asked.answer.set_exception(asked.error)
                else:
                    self.seen.put_out += len(asked.outputs)
                    asked.answer.set_result((asked.outputs, asked.steps))
            carrier.answered = []
        while self.takers:
            if carrier.outputs:
                outputs, carrier.outputs = carrier.outputs, []
                self.seen.put_out += len(outputs)
                self.takers.popleft().answer.set_result(outputs)
                if not self.goes_on and not self.is_over:  # there is room again
                    self.goes_on = True
                    self.ref.tell(_GO_ON)
            elif self.is_over:
                answer = self.takers.popleft().answer
                if self.failure is not None:
                    answer.set_exception(self.failure._again())
                else:
                    answer.set_result([])
            else:
                return

    # --- boxes elsewhere -------------------------------------------------------------------------

    def _begin_calls(self) -> None:
        calls = self.carrier.calls
        if calls:
            self.carrier.calls = []
            for call in calls:
                self._begin(call)

    def _begin(self, call: Any) -> None:
        """Have a call made; it has failed if there is nobody to make it."""
        try:
            sees_to_timeout = self.callers.call(call)
        except Exception as error:  # as of a process that can have no more threads
            self._note(CallEnded(call, error, call.tries))
            return
        timeout = call.box.options.timeout
        if timeout is not None and not sees_to_timeout:
            self.timers[call] = self.after(timeout, CallTimeout(call, call.tries))

    def _note(self, event: CallOutput | CallEnded, goes_on: bool = False) -> Future[None] | None:
        """Remember what came of a call; a call that is over gives nothing more.

        `goes_on` says that its caller is at work still, though nobody waits for it any longer.
        """
        call = event.call
        answer = None
        if isinstance(event, CallOutput) and event.waits:
            answer = event.answer = Future()
        if isinstance(event, CallEnded) and not goes_on:
            self.callers.is_free(call, event.attempt)
        if event.attempt != call.tries or call.is_over or self.is_over:
            if answer is not None:
                answer.set_exception(NetEnded("nothing more of this call is taken"))
            return answer
        if isinstance(event, CallEnded):
            call.box.has_tried(event.seconds)
            timer = self.timers.pop(call, None)
            if timer is not None:
                timer.cancel()
            if isinstance(event.error, Exception) and call.tries < call.box.options.retries:
                pause = call.box.options.pause(call.tries)
                call.tries += 1
                self.timers[call] = self.after(pause, RetryCall(call))
                return None
            call.is_over = True
        self.events.append(event)
        return answer

    def _handle(self, event: CallOutput | CallEnded) -> None:
        """Do what came of a call."""
        call, carrier = event.call, self.carrier
        node = call.box
        if isinstance(event, CallOutput):
            try:
                node.give(carrier, call, event.values)
            except Exception as error:
                self._give_up(event, error)
            if event.answer is not None:
                event.answer.set_result(None)
        else:
            if event.error is not None and self._fail(node, call.record, event.error):
                node.let_pass(carrier, call)
                # Later calls' outputs go on when this record has gone on.
                self.events.appendleft(CallEnded(call, None, event.attempt))
                return
            node.end(carrier, call)

    def _give_up(self, given: CallOutput, error: Exception) -> None:
        """End a call that has put out what is no output."""
        call = given.call
        call.is_over = True
        timer = self.timers.pop(call, None)
        if timer is not None:
            timer.cancel()
        for event in [event for event in self.events if event.call is call]:
            self.events.remove(event)
            if isinstance(event, CallOutput) and event.answer is not None:
                event.answer.set_exception(NetEnded("nothing more of this call is taken"))
        self.events.appendleft(CallEnded(call, error, given.attempt))

    def _retry(self, message: RetryCall) -> None:
        self.timers.pop(message.call, None)
        self._begin(message.call)

    def _time_out(self, message: CallTimeout) -> None:
        call, timeout = message.call, message.call.box.options.timeout
        late = TimeoutError(f"{call.box.path}: the call took more than {timeout} s")
        self._note(CallEnded(call, late, message.attempt, timeout), goes_on=True)

    # --- errors ----------------------------------------------------------------------------------

    def _fail(self, node: Any, record: Any, error: BaseException) -> bool:
        """Handle an error at a record: raise the run's, or tell whether the record goes on."""
        if comes_from_signal(error):
            raise error  # it is for the thread, which runs a manual system
        node.failures += 1
        made, effect = run_error(node, record, error), effect_of(node, error)
        if effect == "fail":
            asked = record.asked
            if asked is None:
                raise RunFailed(made, record)
            if asked.error is None:  # it fails for those alone who asked for it
                asked.error = made
            return False
        if effect == "variant":
            make_variant(node, record, made, self.net_state.shapes)
            return True
        self.seen.skipped += 1
        self._dead_letter(record.as_dict(), "skipped", made)
        return False

    def _sweep_later(self) -> None:
        """Have a Sweep come when the next cell gives up its records."""
        timer = self.timers.pop(Sweep, None)
        if timer is not None:
            timer.cancel()
        self.sweeps_at = self.carrier.next_expiry
        self.timers[Sweep] = self.after(max(0.0, self.sweeps_at - self.clock()), Sweep())

    def _sweep(self, _: Sweep) -> None:
        self.sweeps_at = math.inf
        for record in self.carrier.expired(self.clock()):
            self._dead_letter(record.as_dict(), "unpaired")

    # --- the end ---------------------------------------------------------------------------------

    def _end(self, failure: NetError | None, reported: MovingRecord | None = None) -> None:
        """End the run: by a failure, maybe at a record, or since nothing more can come of it."""
        if self.is_over:
            return
        self.is_over = True
        self.failure = failure
        reason = "unpaired" if failure is None else "stopped"
        for event in self.events:
            if isinstance(event, CallOutput):
                with suppress(Exception):  # it is no output
                    event.call.box.give(self.carrier, event.call, event.values)
        left = [] if failure is None else records_left(self.carrier)
        in_stack_or_cells = self.carrier.end()
        for record in {id(each): each for each in (*left, *in_stack_or_cells)}.values():
            if record is not reported:
                self._dead_letter(record.as_dict(), reason, failure)
        for event in self.events:
            if isinstance(event, CallOutput) and event.answer is not None:
                event.answer.set_exception(NetEnded("the run has ended"))
        self.events.clear()
        for rows, answer in self.waiting:
            self._refuse(rows, answer, self._again())
        self.waiting.clear()
        for asked in self.asked:
            asked.answer.set_exception(asked.error or self._again())
        self.asked.clear()
        for timer in self.timers.values():
            timer.cancel()
        self._hand_out()
        if self.finishers:
            self._answer_finishers()
        if self.is_dropped:
            self._leave()
        for child in self.children:
            with suppress(Exception):
                child.stop()

    def _again(self) -> NetError:
        assert self.failure is not None
        return self.failure._again()

    def _answer_finishers(self) -> None:
        if self.failure is None and self.finished is None:
            self.finished, self.carrier.outputs = self.carrier.outputs, []
            self.seen.put_out += len(self.finished)
        for future in self.finishers.values():
            if self.failure is None:
                future.set_result(self.finished)
            elif not future.done():
                future.set_exception(self._again())

    def _statistics(self, _: Look) -> NetStatistics:
        seen, carrier = self.seen, self.carrier
        seen.hops, seen.elsewhere, seen.in_cells = carrier.hops, carrier.elsewhere, carrier.kept
        seen.calls = dict(sorted(Counter(call.box.path for call in carrier.running).items()))
        seen.places = seen_at(self.net_state.nodes)
        return seen

    _HANDLERS: ClassVar[dict[type[Any], Callable[[Conductor, Any], Any]]] = {
        GoOn: _note_go_on,
        SentRows: _wait_for_room,
        Ask: _ask,
        Limit: _add_limit,
        Take: _add_taker,
        GiveBack: _take_back,
        Withdraw: _withdraw,
        Finish: _finish,
        Close: _close,
        Cancel: _cancel,
        RunDropped: _drop,
        Look: _statistics,
        CallOutput: _note,
        CallEnded: _note,
        RetryCall: _retry,
        CallTimeout: _time_out,
        Sweep: _sweep,
    }
