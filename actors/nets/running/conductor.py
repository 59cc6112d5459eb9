"""The actor of a run: it has the carrier, lets records in, and has boxes called elsewhere."""

from __future__ import annotations

import math
import sys
from collections import Counter, deque
from contextlib import suppress
from typing import Any

from callboard._inside.answers.future import Future
from callboard.actor import Actor
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_repr
from callboard.nets.errors import NetEnded, NetError
from callboard.nets.kernel.nodes import sweep
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.kernel.remains import remains
from callboard.nets.running.calling import Callers
from callboard.nets.running.failing import (
    RunFailed,
    as_record_error,
    effect_of,
    make_variant,
    told_as,
)
from callboard.nets.running.messages import (
    Abandoned,
    Ask,
    AskAgain,
    Asked,
    Cancel,
    Close,
    Ended,
    Expired,
    Finish,
    GiveBack,
    Given,
    GoOn,
    Limit,
    Look,
    NetStatistics,
    SentRows,
    Sweep,
    Take,
    Unfinish,
    Unlimit,
    Untake,
    Withdraw,
)
from callboard.nets.running.setting import Setting, seen_at

HOPS = 20_000  # of a turn; then other actors of the worker have theirs
_GO_ON = GoOn()


class Conductor(Actor[Any]):
    """Has the carrier of a run. All of it happens in turns of this actor, so nothing has a lock.

    Outputs of boxes that run elsewhere come first, then records that are sent. Both wait until
    the carrier has no record on its stack, so no record is overtaken on its way from one entity
    to the next.
    """

    def __init__(self, setting: Setting, window: int) -> None:
        self.setting = setting
        self.window = window
        runtime = self.system._runtime
        self.clock = runtime.timers.now
        self.callers = Callers(self, manual=runtime.manual)
        self.carrier = setting.carrier
        self.carrier.failed = self._fail
        self.carrier.clock = self.clock
        self.carrier.most_elsewhere = window
        self.begun = False
        self.goes_on = False  # a GoOn is on its way
        self.waiting: deque[tuple[SentRows, Future[None]]] = deque()
        self.events: deque[Given | Ended] = deque()
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
        self.seen = setting.seen

    # --- messages --------------------------------------------------------------------------------

    def receive(self, message: Any) -> Any:
        """Do what a message says, then carry what there is. On a worker's thread."""
        answer: Any = None
        match message:
            case GoOn():
                self.goes_on = False
            case SentRows():
                answer = self._wait_for_room(message)
            case Ask(record, traced):
                answer = self._ask(record, traced)
            case Given() | Ended():
                answer = self._note(message)
            case Limit():
                self.limits[message] = message.limit
                self._heed_limits()
            case Unlimit(limit):
                self.limits.pop(limit, None)
                self._heed_limits()
            case Take():
                self.takers.append(message)
            case Untake(take):
                if take in self.takers:
                    self.takers.remove(take)
                    take.answer.set_result([])
            case GiveBack(outputs):
                self.carrier.outputs = outputs + self.carrier.outputs
                self.seen.put_out -= len(outputs)
            case Finish():
                answer = self._finish(message)
            case Unfinish(finish):
                self._unfinish(finish)
            case Close():
                self.is_closed = True
            case Cancel():
                self._end(NetEnded("the run was cancelled"))
                return None
            case Withdraw(rows):
                rows.withdrawn = True
                for each in [each for each in self.waiting if each[0] is rows]:
                    self.waiting.remove(each)
                    each[1].set_result(None)
                answer = rows.sent
            case Look():
                return self._statistics()
            case AskAgain(call):
                self.timers.pop(call, None)
                self._begin(call)
            case Expired(call, attempt):
                late = TimeoutError(self._why_late(call))
                self._note(Ended(call, late, attempt, call.box.options.timeout), goes_on=True)
            case Sweep():
                self._sweep()
            case Abandoned():  # it ends when nothing more comes of what was told
                self.is_dropped = self.is_closed = True
                self._heed_limits()
                if self.is_over:
                    self._leave()
        self._advance()
        return answer

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
                self._bury(row, "stopped", error)
        answer.set_exception(error.again())

    def _bury(self, record: Any, reason: str, error: NetError | None = None) -> None:
        self.system.dead_letters.post(record, self.ref, None, reason, error)

    def _ask(self, record: Any, traced: bool) -> Future[Any]:
        asked = Asked([] if traced else None)
        if self.is_over or self.is_closed:
            asked.answer.set_exception(self.failure or NetEnded("the run takes no more records"))
        else:
            self.asked.add(asked)
            self.waiting.append((SentRows([record], asked), Future()))
        return asked.answer

    def _finish(self, finish: Finish) -> Any:
        self.is_closed = True
        self.finishers[finish] = Future()
        self._heed_limits()
        if self.is_over:
            self._answer_finishers()
        return self.finishers[finish]

    def _heed_limits(self) -> None:
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
        self._bury_outputs()
        self.setting.on_end()

    def _leave(self) -> None:
        """Stop this actor: its user is gone, and nothing more can come."""
        self._bury_outputs()
        self.stop()

    def _bury_outputs(self) -> None:
        outputs, self.carrier.outputs = self.carrier.outputs, []
        for output in outputs:
            self._bury(output, "untaken")

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
                self.setting.begin()
            while carrier.hops < until:
                if carrier.run(until - carrier.hops):
                    break
                self._begin_calls()
                if not carrier.is_idle:  # the outputs have to be taken first
                    break
                if self.events:
                    self._happen(self.events.popleft())
                elif not (self.waiting and self._let_in(until)):
                    break
        except RunFailed as failed:
            self._bury(failed.record.as_dict(), "failed", failed.error)
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
            carrier.take(self.setting.entry, rows.rows, rows.sent, self.window, until, rows.asked)
        except Exception as raised:
            error = as_record_error(raised)
            rows.sent = carrier.taken
            if rows.told:  # the other rows are not to blame
                self._bury(rows.rows[rows.sent], "refused", error)
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
                    answer.set_exception(self.failure.again())
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
            self._note(Ended(call, error, call.tries))
            return
        timeout = call.box.options.timeout
        if timeout is not None and not sees_to_timeout:
            self.timers[call] = self.after(timeout, Expired(call, call.tries))

    def _note(self, event: Given | Ended, goes_on: bool = False) -> Future[None] | None:
        """Remember what came of a call; a call that is over gives nothing more.

        `goes_on` says that its caller is at work still, though nobody waits for it any longer.
        """
        call = event.call
        answer = None
        if isinstance(event, Given) and event.waits:
            answer = event.answer = Future()
        if isinstance(event, Ended) and not goes_on:
            self.callers.is_free(call, event.attempt)
        if event.attempt != call.tries or call.is_over or self.is_over:
            if answer is not None:
                answer.set_exception(NetEnded("nothing more of this call is taken"))
            return answer
        if isinstance(event, Ended):
            call.box.has_tried(event.seconds)
            timer = self.timers.pop(call, None)
            if timer is not None:
                timer.cancel()
            if isinstance(event.error, Exception) and call.tries < call.box.options.retries:
                pause = call.box.options.pause(call.tries)
                call.tries += 1
                self.timers[call] = self.after(pause, AskAgain(call))
                return None
            call.is_over = True
        self.events.append(event)
        return answer

    def _happen(self, event: Given | Ended) -> None:
        """Do what came of a call."""
        call, carrier = event.call, self.carrier
        node = call.box
        if isinstance(event, Given):
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
                self.events.appendleft(Ended(call, None, event.attempt))
                return
            node.end(carrier, call)

    def _give_up(self, given: Given, error: Exception) -> None:
        """End a call that has put out what is no output."""
        call = given.call
        call.is_over = True
        timer = self.timers.pop(call, None)
        if timer is not None:
            timer.cancel()
        for event in [event for event in self.events if event.call is call]:
            self.events.remove(event)
            if isinstance(event, Given) and event.answer is not None:
                event.answer.set_exception(NetEnded("nothing more of this call is taken"))
        self.events.appendleft(Ended(call, error, given.attempt))

    @staticmethod
    def _why_late(call: Any) -> str:
        return f"{call.box.path}: the call took more than {call.box.options.timeout} s"

    # --- errors ----------------------------------------------------------------------------------

    def _fail(self, node: Any, record: Any, error: BaseException) -> bool:
        """Handle an error at a record: raise the run's, or tell whether the record goes on."""
        if comes_from_signal(error):
            raise error  # it is for the thread, which runs a manual system
        node.failures += 1
        made, effect = told_as(node, record, error), effect_of(node, error)
        if effect == "fail":
            asked = record.asked
            if asked is None:
                raise RunFailed(made, record)
            if asked.error is None:  # it fails for those alone who asked for it
                asked.error = made
            return False
        if effect == "variant":
            make_variant(node, record, made, self.setting.shapes)
            return True
        self.seen.skipped += 1
        self._bury(record.as_dict(), "skipped", made)
        return False

    def _sweep_later(self) -> None:
        """Have a Sweep come when the next cell gives up its records."""
        timer = self.timers.pop(Sweep, None)
        if timer is not None:
            timer.cancel()
        self.sweeps_at = self.carrier.next_expiry
        self.timers[Sweep] = self.after(max(0.0, self.sweeps_at - self.clock()), Sweep())

    def _sweep(self) -> None:
        self.sweeps_at = math.inf
        for record in self.carrier.expired(self.clock()):
            self._bury(record.as_dict(), "unpaired")

    # --- the end ---------------------------------------------------------------------------------

    def _end(self, failure: NetError | None, buried: MovingRecord | None = None) -> None:
        """End the run: by a failure, maybe at a record, or since nothing more can come of it."""
        if self.is_over:
            return
        self.is_over = True
        self.failure = failure
        reason = "unpaired" if failure is None else "stopped"
        for event in self.events:
            if isinstance(event, Given):
                with suppress(Exception):  # it is no output
                    event.call.box.give(self.carrier, event.call, event.values)
        left = [] if failure is None else remains(self.carrier)
        in_stack_or_cells = self.carrier.end()
        for record in {id(each): each for each in (*left, *in_stack_or_cells)}.values():
            if record is not buried:
                self._bury(record.as_dict(), reason, failure)
        for event in self.events:
            if isinstance(event, Given) and event.answer is not None:
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
        return self.failure.again()

    def _answer_finishers(self) -> None:
        if self.failure is None and self.finished is None:
            self.finished, self.carrier.outputs = self.carrier.outputs, []
            self.seen.put_out += len(self.finished)
        for future in self.finishers.values():
            if self.failure is None:
                future.set_result(self.finished)
            elif not future.done():
                future.set_exception(self._again())

    def _statistics(self) -> NetStatistics:
        seen, carrier = self.seen, self.carrier
        seen.hops, seen.elsewhere, seen.in_cells = carrier.hops, carrier.elsewhere, carrier.kept
        seen.calls = dict(sorted(Counter(call.box.path for call in carrier.running).items()))
        seen.places = seen_at(self.setting.nodes)
        return seen
