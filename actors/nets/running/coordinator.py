"""The coordinator, a run's actor: it admits and moves records, and passes slow boxes to others."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from callboard._inside.answers.future import Future
from callboard.actor import Actor
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_repr
from callboard.nets.errors import NetEnded, NetError
from callboard.nets.kernel.combinators import sweep
from callboard.nets.kernel.executor import records_left
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.running import failing
from callboard.nets.running.box_workers import Callers
from callboard.nets.running.messages import (
    Ask,
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
    PendingAsk,
    RetryCall,
    RunDropped,
    SentRows,
    Sweep,
    Take,
    Withdraw,
)
from callboard.nets.running.net_state import NetState
from callboard.nets.running.reports import NetStatistics

HOPS = 20_000  # for one message; then other actors of the worker run


class Coordinator(Actor[Any]):
    """Runs the executor of a net. Only this actor does, so there are no locks.

    Outputs of boxes that run elsewhere come first, then records that are sent. Both wait until
    the executor has no record on its stack, so no record is overtaken on its way from one entity
    to the next.
    """

    def __init__(self, state: NetState, window: int) -> None:
        self.net_state = state
        self.window = window
        runtime = self.system._runtime
        self.clock = runtime.timers.now
        self.callers = Callers(self, manual=runtime.manual)
        self.executor = state.executor
        self.executor.failed = self._fail
        self.executor.clock = self.clock
        self.executor.max_elsewhere = window
        self.goes_on = False  # a GoOn is on its way
        self.waiting: deque[tuple[SentRows, Future[None]]] = deque()
        self.events: deque[CallOutput | CallEnded] = deque()
        self.asked: set[PendingAsk] = set()
        self.takers: deque[Take] = deque()
        self.limits: dict[Limit, int] = {}
        self.finishers: dict[Finish, Future[Any]] = {}
        self.finished: list[Any] | None = None  # the outputs that they have
        self.is_closed = False  # no more records are taken
        self.is_over = False
        self.is_dropped = False  # the handle is gone
        self.failure: NetError | None = None
        self.sweep_timer: Any = None
        self.sweeps_at = math.inf
        self.seen = state.seen

    # --- messages --------------------------------------------------------------------------------

    def receive(self, message: Any) -> Any:
        """Handle a message, then move the records that there are. On a worker's thread."""
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
        self.executor.outputs = message.outputs + self.executor.outputs
        self.seen.put_out -= len(message.outputs)

    def _close(self, _: Close) -> None:
        self.is_closed = True

    def _cancel(self, _: Cancel) -> None:
        self._end(NetEnded("the run was cancelled"))

    def _drop(self, _: RunDropped) -> None:
        self.is_dropped = self.is_closed = True
        self._apply_limits()
        if self.is_over:
            self.stop()

    def _withdraw(self, message: Withdraw) -> None:
        """Forget a request that its sender has withdrawn."""
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
                self._withdraw_finish(finish)

    def _wait_for_room(self, rows: SentRows) -> Future[None]:
        answer: Future[None] = Future()
        if self.is_over or self.is_closed:
            self._refuse(rows, answer)
        else:
            self.waiting.append((rows, answer))
        return answer

    def _refuse(self, rows: SentRows, answer: Future[None]) -> None:
        """Refuse the other rows: an error for the sender, or dead letters if it told them."""
        error = self._why_closed()
        if rows.told and not rows.withdrawn:
            for row in rows.rows[rows.sent :]:
                self._dead_letter(row, "stopped", error)
        answer.set_exception(error)

    def _why_closed(self) -> NetError:
        return (self.failure or NetEnded("the run takes no more records"))._again()

    def _dead_letter(self, record: Any, reason: str, error: NetError | None = None) -> None:
        self.system.dead_letters.post(record, self.ref, None, reason, error)

    def _ask(self, ask: Ask) -> Future[Any]:
        asked = PendingAsk([] if ask.traced else None)
        if self.is_over or self.is_closed:
            asked.answer.set_exception(self._why_closed())
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
        """Set how many outputs may wait. There is no limit for those that finish() returns."""
        limits = () if self.finishers or self.is_dropped else self.limits.values()
        self.executor.max_outputs = min(limits, default=sys.maxsize)

    def _withdraw_finish(self, finish: Finish) -> None:
        """Forget a wait for the end. Outputs that it has not taken are for the next one."""
        has_waited = self.finishers.pop(finish).set_result([])
        if not has_waited and not self.finishers and self.finished is not None:
            self.seen.put_out -= len(self.finished)
            self.executor.outputs, self.finished = self.finished, None

    def on_failure(self, error: BaseException, message: Any) -> None:
        """End the run by an error of its own code."""
        made = NetError(f"the run failed at {type(message).__name__}: {safe_repr(error)}")
        made.__cause__ = error
        self._end(made)

    def on_stop(self) -> None:
        """End the run: its system is stopping, or nothing more can come and the handle is gone."""
        self._end(NetEnded("the run's system was stopped"))
        outputs, self.executor.outputs = self.executor.outputs, []
        for output in outputs:
            self._dead_letter(output, "uncollected")
        self.net_state.on_end()

    # --- moving records --------------------------------------------------------------------------

    def _advance(self) -> None:
        if self.is_over:
            self._hand_out()
            return
        executor = self.executor
        executor.now = self.clock()
        until = executor.hops + HOPS
        try:
            self.net_state.begin()
            while executor.hops < until:
                if executor.run(until - executor.hops):
                    break
                self._begin_calls()
                if not executor.is_idle:  # outputs have to be taken first
                    break
                if self.events:
                    self._handle(self.events.popleft())
                elif not (self.waiting and self._let_in(until)):
                    break
        except failing.RunFailed as failed:
            self._dead_letter(failed.record.as_dict(), "failed", failed.error)
            self._end(failed.error, failed.record)
            return
        finally:
            if executor.is_idle:
                sweep(executor)
        self._begin_calls()
        if executor.hops >= until:
            self._go_on_later()
        self._hand_out()
        if executor.next_expiry < self.sweeps_at:
            self._sweep_later()
        if self._is_done():
            self._end(None)

    def _go_on_later(self) -> None:
        if not self.goes_on:
            self.goes_on = True
            self.ref.tell(GoOn())

    def _is_done(self) -> bool:
        return (
            self.is_closed
            and not self.waiting
            and not self.events
            and self.executor.is_empty
            and not self.executor.elsewhere
        )

    def _let_in(self, until: int) -> bool:
        """Let in waiting records, and tell whether any came in."""
        rows, answer = self.waiting[0]
        executor, before = self.executor, rows.sent
        if rows.withdrawn:
            self.waiting.popleft()
            return True
        try:
            executor.take(
                self.net_state.entry, rows.rows, rows.sent, self.window, until, rows.asked
            )
        except Exception as raised:
            error = failing.as_record_error(raised)
            rows.sent = executor.taken
            if rows.told:  # the other rows go on
                self._dead_letter(rows.rows[rows.sent], "refused", error)
                rows.sent += 1
                return True
            self.waiting.popleft()
            if rows.asked is not None:
                rows.asked.error = error
                executor.answered.append(rows.asked)
            answer.set_exception(error)
            return True
        finally:
            rows.sent = max(rows.sent, executor.taken)
            self.seen.sent += executor.taken - before
        if rows.sent == len(rows.rows):
            self.waiting.popleft()
            answer.set_result(None)
            return True
        return rows.sent > before

    def _hand_out(self) -> None:
        """Answer asks, and waits for outputs."""
        executor = self.executor
        if executor.answered:
            for asked in executor.answered:
                self.asked.discard(asked)
                if asked.error is not None:
                    asked.answer.set_exception(asked.error)
                else:
                    self.seen.put_out += len(asked.outputs)
                    asked.answer.set_result((asked.outputs, asked.steps))
            executor.answered = []
        while self.takers:
            if executor.outputs:
                outputs, executor.outputs = executor.outputs, []
                self.seen.put_out += len(outputs)
                self.takers.popleft().answer.set_result(outputs)
                if not self.is_over:  # there is room again
                    self._go_on_later()
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
        calls = self.executor.calls
        if calls:
            self.executor.calls = []
            for call in calls:
                self._begin(call)

    def _begin(self, call: Any) -> None:
        """Begin a call elsewhere. It has failed if there is no thread for it."""
        try:
            self.callers.call(call)
        except Exception as error:  # the process can have no more threads, for one
            self._note(CallEnded(call, error, call.tries))

    def _note(self, event: CallOutput | CallEnded, goes_on: bool = False) -> Future[None] | None:
        """Queue an event of a call. One that is over gives nothing more.

        `goes_on`: its caller is still at work, though its result is not needed any more.
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
            call.box.note_try(event.seconds)
            self.callers.cancel_timer(call)
            if isinstance(event.error, Exception) and call.tries < call.box.options.retries:
                self.callers.retry_later(call)
                return None
            call.is_over = True
        self.events.append(event)
        return answer

    def _handle(self, event: CallOutput | CallEnded) -> None:
        """Handle an event of a call."""
        call, executor = event.call, self.executor
        node = call.box
        if isinstance(event, CallOutput):
            try:
                node.give(executor, call, event.values)
            except Exception as error:
                self._give_up(event, error)
            if event.answer is not None:
                event.answer.set_result(None)
        else:
            if event.error is not None and self._fail(node, call.record, event.error):
                node.pass_record(executor, call)
                # Outputs of later calls are passed on after this record.
                self.events.appendleft(CallEnded(call, None, event.attempt))
                return
            node.end(executor, call)

    def _give_up(self, given: CallOutput, error: Exception) -> None:
        """End a call that has emitted an invalid value."""
        call = given.call
        call.is_over = True
        self.callers.cancel_timer(call)
        for event in [event for event in self.events if event.call is call]:
            self.events.remove(event)
            if isinstance(event, CallOutput) and event.answer is not None:
                event.answer.set_exception(NetEnded("nothing more of this call is taken"))
        self.events.appendleft(CallEnded(call, error, given.attempt))

    def _retry(self, message: RetryCall) -> None:
        self._begin(message.call)

    def _time_out(self, message: CallTimeout) -> None:
        call, timeout = message.call, message.call.box.options.timeout
        late = TimeoutError(f"{call.box.path}: the call took more than {timeout} s")
        self._note(CallEnded(call, late, message.attempt, timeout), goes_on=True)

    # --- errors ----------------------------------------------------------------------------------

    def _fail(self, node: Any, record: Any, error: BaseException) -> bool:
        """Handle an error at a record: raise RunFailed, or tell whether the record continues."""
        if comes_from_signal(error):
            raise error  # for the thread that runs a manual system
        node.failures += 1
        made, effect = failing.run_error(node, record, error), failing.effect_of(node, error)
        if effect == "fail":
            asked = record.asked
            if asked is None:
                raise failing.RunFailed(made, record)
            if asked.error is None:  # only the ask fails
                asked.error = made
            return False
        if effect == "variant":
            failing.make_variant(node, record, made, self.net_state.shapes)
            return True
        self.seen.skipped += 1
        self._dead_letter(record.as_dict(), "skipped", made)
        return False

    def _sweep_later(self) -> None:
        """Schedule a Sweep for when the next cell gives up its records."""
        if self.sweep_timer is not None:
            self.sweep_timer.cancel()
        self.sweeps_at = self.executor.next_expiry
        self.sweep_timer = self.after(max(0.0, self.sweeps_at - self.clock()), Sweep())

    def _sweep(self, _: Sweep) -> None:
        self.sweeps_at = math.inf
        for record in self.executor.expired(self.clock()):
            self._dead_letter(record.as_dict(), "unpaired")

    # --- the end ---------------------------------------------------------------------------------

    def _end(self, failure: NetError | None, reported: MovingRecord | None = None) -> None:
        """End the run: by a failure, perhaps at a record, or because nothing more can come."""
        if self.is_over:
            return
        self.is_over = True
        self.failure = failure
        reason = "unpaired" if failure is None else "stopped"
        given = [event for event in self.events if isinstance(event, CallOutput)]
        for event in given:
            with suppress(Exception):  # it is invalid
                event.call.box.give(self.executor, event.call, event.values)
        left = [] if failure is None else records_left(self.executor)
        in_stack_or_cells = self.executor.end()
        for record in {id(each): each for each in (*left, *in_stack_or_cells)}.values():
            if record is not reported:
                self._dead_letter(record.as_dict(), reason, failure)
        for event in given:
            if event.answer is not None:
                event.answer.set_exception(NetEnded("the run has ended"))
        self.events.clear()
        for rows, answer in self.waiting:
            self._refuse(rows, answer)
        self.waiting.clear()
        for asked in self.asked:
            asked.answer.set_exception(asked.error or self._why_closed())
        self.asked.clear()
        self.callers.cancel_timers()
        if self.sweep_timer is not None:
            self.sweep_timer.cancel()
        self._hand_out()
        self._answer_finishers()
        if self.is_dropped:
            self.stop()
        for child in self.children:
            with suppress(Exception):
                child.stop()

    def _answer_finishers(self) -> None:
        if self.finishers and self.failure is None and self.finished is None:
            self.finished, self.executor.outputs = self.executor.outputs, []
            self.seen.put_out += len(self.finished)
        for future in self.finishers.values():
            if self.failure is None:
                future.set_result(self.finished)
            elif not future.done():
                future.set_exception(self.failure._again())

    def _statistics(self, _: Look) -> NetStatistics:
        return self.net_state.statistics()

    _HANDLERS: ClassVar[dict[type[Any], Callable[[Coordinator, Any], Any]]] = {
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
