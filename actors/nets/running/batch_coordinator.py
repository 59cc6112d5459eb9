"""The coordinator of a run with boxes that others call for batches of records."""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping
from typing import Any

from callboard.nets.errors import NetError
from callboard.nets.kernel.process_boxes import CallBatch, CallQueue, ProcessBoxNode
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.running import failing
from callboard.nets.running.batch_calls import called, rows_of
from callboard.nets.running.box_choice import BoxChoice
from callboard.nets.running.coordinator import HOPS, Coordinator
from callboard.nets.running.messages import CallEnded, CallOutput
from callboard.nets.running.net_state import NetState

# Batches that are sent to a process or a worker before it has answered the first of them.
AHEAD = 2
# Nanoseconds of a turn that is too short to measure each one; and the turns without a measurement.
_SHORT = 1_000_000
_UNSEEN = 15


class BatchCoordinator(Coordinator):
    """Sends batches of the records that wait for boxes, and passes on the outputs.

    It never waits for an answer: answers are messages. Those of one queue are handled in the order
    in which the records came to it. The queue of a state has one batch at work at a time.
    """

    def __init__(
        self,
        state: NetState,
        window: int,
        count: int,
        choices: Mapping[ProcessBoxNode, BoxChoice],
    ) -> None:
        super().__init__(state, window)
        self.choices = choices
        self.most_batches = AHEAD * count
        self.sent = 0  # batches of plain boxes without an answer
        self.unseen = 0  # turns to come without a measurement

    def _advance(self) -> None:
        if self.choices and not self.is_over:
            self._advance_and_choose()
        else:
            super()._advance()
        self._send_batches()

    def _send_batches(self) -> None:
        executor = self.executor
        held = []
        while executor.unsent:
            queue: CallQueue = executor.unsent.pop(0)
            if not self._has_room(queue):
                held.append(queue)
                continue
            most = queue.batch_size
            if not queue.box.has_state:
                most = min(most, -(-executor.elsewhere // self.most_batches))
            batch = queue.next_batch(executor, most)
            if queue.waiting:
                executor.unsent.append(queue)  # the next turn is another one's
            if queue.box.is_here:  # it has come back
                self._call_here(batch)
            else:
                self._send(batch)
            self._pass_on_later(queue)
        executor.unsent = held

    def _has_room(self, queue: CallQueue) -> bool:
        if queue.box.has_state:
            return not queue.is_at_work
        return self.sent < self.most_batches or queue.box.is_here

    def _send(self, batch: CallBatch) -> None:
        """Send a batch. Its answer is a message."""
        raise NotImplementedError

    def _pass_on_later(self, queue: CallQueue) -> None:
        """Queue the batches that are next in the order and have their outputs."""
        while queue.sent and queue.sent[0].is_answered:
            self.events.append(CallEnded(queue.sent.popleft()))

    # --- the choice -------------------------------------------------------------------------------

    def _advance_and_choose(self) -> None:
        if self.unseen:
            self.unseen -= 1
            super()._advance()
            return
        for choice in self.choices.values():
            choice.begin_turn()
        processor, elapsed = time.thread_time_ns(), time.perf_counter_ns()
        super()._advance()
        processor, elapsed = time.thread_time_ns() - processor, time.perf_counter_ns() - elapsed
        if elapsed < _SHORT:
            self.unseen = _UNSEEN
        queued = self.ref._queue_length or 0
        for choice in self.choices.values():
            choice.end_turn(min(1.0, processor / max(1, elapsed)), queued)
            self._move(choice)

    def _move(self, choice: BoxChoice) -> None:
        """Have a box run where its choice says."""
        box, executor = choice.box, self.executor
        if box.is_here == choice.is_here or self.is_over:
            return
        if not choice.is_here:
            # Records on their way have no lineages, or are between two outputs of a generator.
            if (box.generates or not executor.keeps_lineage) and not executor.is_empty:
                return
            executor.keeps_lineage = True
        box.is_here = choice.is_here

    def _call_here(self, batch: CallBatch) -> None:
        """Call the box here for a batch: not all of it can be sent."""
        box = batch.box
        rows = rows_of(batch.columns(), len(batch))
        outputs, errors, spent, worst = called(function_called(box), rows, generates=box.generates)
        box.note_tries(len(batch), spent, worst)
        batch.note_answer(outputs, errors)
        self._go_on_later()  # no answer will come

    def _handle(self, event: CallOutput | CallEnded) -> None:
        batch = event.call
        if not isinstance(batch, CallBatch):
            super()._handle(event)
            return
        executor = self.executor
        if batch.lost is not None:
            error = failing.run_error(batch.box, batch.record, batch.lost)
            raise failing.RunFailed(error, batch.record)
        if batch.failed is None:
            batch.pass_on(executor, executor.hops + HOPS)
        else:
            batch.end_failed(executor, self._fail(batch.box, *batch.failed))
        if batch.is_done:
            executor.running.discard(batch)
        else:
            self.events.appendleft(event)

    def _end(self, failure: NetError | None, reported: MovingRecord | None = None) -> None:
        if self.is_over:
            return
        batches = [each for each in self.executor.running if isinstance(each, CallBatch)]
        super()._end(failure, reported)
        for batch in batches:
            batch.queue.sent.clear()
            batch.clear()


def function_called(box: ProcessBoxNode) -> Any:
    """Return what is called with the columns of a batch. An object comes before its values."""
    return operator.call if box.has_state else box.function
