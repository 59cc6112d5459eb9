"""The coordinator of a run whose boxes several workers call, without an interpreter lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from callboard.nets.errors import NetError
from callboard.nets.kernel.node_builder import generates, is_portable
from callboard.nets.kernel.process_boxes import CallBatch, ProcessBoxNode
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.running.batch_calls import rows_of
from callboard.nets.running.batch_coordinator import AHEAD, BatchCoordinator, function_called
from callboard.nets.running.box_choice import MOST, BoxChoice, WorkerChoice, set_batch_size
from callboard.nets.running.box_workers import RowsToCall
from callboard.nets.running.coordinator import Coordinator
from callboard.nets.running.messages import BatchCalled
from callboard.nets.running.net_state import NetState
from callboard.nets.terms.network import Box

# Queues for each worker, among which the objects of a class are divided. A queue has one batch at
# work at a time, on any worker.
_QUEUES = 4


class WorkerCoordinator(BatchCoordinator):
    """Sends batches to actors on the workers of the system, one on each."""

    def __init__(
        self,
        state: NetState,
        window: int,
        count: int,
        choices: dict[ProcessBoxNode, BoxChoice],
    ) -> None:
        super().__init__(state, window, count, choices)
        self.batches = [0] * count  # at work, or waiting for it, by workers
        self.rows: dict[CallBatch, tuple[int, list[Any]]] = {}  # with the number of the worker

    def _send(self, batch: CallBatch) -> None:
        box = batch.box
        begun = time.thread_time_ns()
        rows = [*rows_of(batch.columns(), len(batch))]
        self.choices[box].note_sent(batch, time.thread_time_ns() - begun)
        if not box.has_state:
            self.sent += 1
        worker = self.batches.index(min(self.batches))
        self.batches[worker] += 1
        self.rows[batch] = worker, rows
        message = RowsToCall(batch, function_called(box), rows, box.generates)
        self.callers.call_batch(worker, message)

    def _note_answer(self, message: BatchCalled) -> None:
        if self.is_over:
            return
        batch = message.batch
        box, spent = batch.box, message.spent
        worker, _ = self.rows.pop(batch)
        self.batches[worker] -= 1
        if not box.has_state:
            self.sent -= 1
        box.note_tries(len(batch), spent, message.worst)
        set_batch_size(batch, spent)
        self.choices[box].note_answer(batch, 0, spent, message.processor)
        batch.note_answer(message.outputs, message.errors)
        self._pass_on_later(batch.queue)

    def _end(self, failure: NetError | None, reported: MovingRecord | None = None) -> None:
        if self.is_over:
            return
        super()._end(failure, reported)
        for _, rows in self.rows.values():
            rows.clear()  # the callers stop

    _HANDLERS: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **Coordinator._HANDLERS,
        BatchCalled: _note_answer,
    }


def moves(box: Box) -> bool:
    """Tell whether a worker may call a box for a batch: the outputs come together."""
    return is_portable(box) and (box.options.holds_outputs or not generates(box))


def coordinator_of(count: int, state: NetState, window: int | None) -> partial[WorkerCoordinator]:
    """Return what makes the coordinator of a net with boxes that this many workers may call."""
    state.begin_here()
    choices: dict[ProcessBoxNode, BoxChoice] = {}
    for _, node in state.moving:
        if node.has_state:
            node.divide(_QUEUES * count, shares_objects=True)
        choices[node] = WorkerChoice(node, count, AHEAD * count)
    window = window or AHEAD * MOST * count
    return partial(WorkerCoordinator, state, window, count, choices)
