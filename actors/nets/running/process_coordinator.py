"""The coordinator of a run with boxes in worker processes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from callboard.core.captured import culprit
from callboard.core.text import safe_str
from callboard.nets.errors import NetEnded, NetError
from callboard.nets.kernel.node_builder import accepting, generates
from callboard.nets.kernel.process_boxes import CallBatch, ProcessBoxNode
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.running.coordinator import HOPS, Coordinator
from callboard.nets.running.messages import BatchAnswered, CallEnded, CallOutput
from callboard.nets.running.net_state import NetState
from callboard.nets.running.process_work import BoxWork, function_named
from callboard.nets.terms.network import Box
from callboard.system import ActorSystem
from callboard.worker_processes.errors import ProcessLost
from callboard.worker_processes.pickling import dumps, loads
from callboard.worker_processes.place import Code
from callboard.worker_processes.processes import WorkerProcesses, processes_of

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

# Batches that are sent to a process before it has answered the first of them.
_AHEAD = 2
# Nanoseconds that the calls of a batch may take, by those of the latest batch of the box.
_LONGEST = 4_000_000
# Records in a batch. After eight halvings there is one.
_MOST = 256
# Processes that may end with a record.
_MOST_TRIES = 9


class ProcessCoordinator(Coordinator):
    """Sends batches of the records that wait for boxes to processes, and passes on the outputs.

    It never waits for a process: answers are messages. Those of one box are handled in the order in
    which the records came to it. If a batch fails as a whole, its halves are sent, until the record
    is found that it fails with.
    """

    def __init__(
        self, state: NetState, window: int, processes: WorkerProcesses, code: Code
    ) -> None:
        super().__init__(state, window)
        self.processes = processes
        self.code = code
        self.most_batches = _AHEAD * processes.count
        self.sent = 0  # batches without an answer
        # By box: the batches whose turn to be passed on has not come.
        self.in_order: dict[ProcessBoxNode, deque[CallBatch]] = {}

    def _advance(self) -> None:
        super()._advance()
        executor = self.executor
        while executor.unsent and self.sent < self.most_batches:
            box: ProcessBoxNode = executor.unsent.pop(0)
            share = -(-executor.elsewhere // self.most_batches)
            batch = box.next_batch(executor, min(share, box.batch_size))
            if box.waiting:
                executor.unsent.append(box)  # the next turn is another one's
            self.in_order.setdefault(box, deque()).append(batch)
            self._send(batch)
            self._pass_on_later(box)

    def _send(self, batch: CallBatch) -> None:
        columns = batch.columns()
        try:
            body = dumps((batch.box.number, len(batch), dumps(columns) if columns else None))
        except Exception as error:
            error.add_note("A record that a worker process receives must be picklable.")
            self._divide(batch, error)
            return
        self.sent += 1
        coordinator = self.ref
        answer = self.processes.send(self.code, [body])
        answer.add_done_callback(lambda of: coordinator.tell(BatchAnswered(batch, of)))

    def _divide(self, batch: CallBatch, error: Exception) -> None:
        """Send the halves of a batch that has failed; or note the error, if it is one record."""
        if len(batch) == 1:
            batch.note_failure(error)
            self._go_on_later()  # no answer will come
            return
        in_order = self.in_order[batch.box]
        at = in_order.index(batch)
        del in_order[at]
        halves = batch.halves(self.executor)
        for half in reversed(halves):
            in_order.insert(at, half)
        for half in halves:
            self._send(half)

    def _note_answer(self, message: BatchAnswered) -> None:
        self.sent -= 1
        if self.is_over:
            return
        batch = message.batch
        error = message.answer.exception()
        if error is None:
            self._read(batch, message.answer.result())
        elif isinstance(error, ProcessLost):
            self._note_end(batch, error)
        elif self.processes.is_over:
            self._end(NetEnded("the run's system was stopped"))
        else:
            failure = NetError(f"boxes cannot run in worker processes: {error}")
            failure.__cause__ = error
            self._end(failure)
        self._pass_on_later(batch.box)

    def _read(self, batch: CallBatch, answer: Parts) -> None:
        try:
            error, outputs, errors, spent, worst = loads(answer)
        except Exception as raised:
            error = raised
        if error is not None:
            self._divide(batch, error)
            return
        batch.note_answer(outputs, errors)
        batch.box.note_tries(len(batch), spent, worst)
        batch.box.batch_size = min(max(1, _LONGEST * len(batch) // max(1, spent)), _MOST)

    def _note_end(self, batch: CallBatch, error: ProcessLost) -> None:
        batch.tries += 1
        if len(batch) > 1:
            self._divide(batch, error)
        elif batch.tries < _MOST_TRIES:
            self._send(batch)
        else:
            text = f"the record was sent to {_MOST_TRIES} worker processes, and each ended with it"
            batch.note_failure(ProcessLost(f"{text}; {error}"))

    def _pass_on_later(self, box: ProcessBoxNode) -> None:
        """Queue the batches of a box that are next in its order and have their outputs."""
        in_order = self.in_order.get(box, ())
        while in_order and in_order[0].is_answered:
            self.events.append(CallEnded(in_order.popleft()))

    def _handle(self, event: CallOutput | CallEnded) -> None:
        batch = event.call
        if not isinstance(batch, CallBatch):
            super()._handle(event)
            return
        executor = self.executor
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
            batch.clear()
        self.in_order.clear()
        self.processes.forget(self.code)

    _HANDLERS: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **Coordinator._HANDLERS,
        BatchAnswered: _note_answer,
    }


def coordinator_of(
    system: ActorSystem, state: NetState, window: int | None
) -> partial[ProcessCoordinator]:
    """Return what makes the coordinator of a net with boxes in processes.

    Raises NetError, which names what cannot be pickled.
    """
    made = []
    for path, box in state.portable:
        function = _portable(box)
        try:
            dumps(function)
        except Exception as error:
            place, found, reason = culprit(path, box.function, dumps, error)
            raise NetError(
                f"the box {path} cannot run in a worker process: {place} ({type(found).__name__}) "
                f"cannot be pickled: {safe_str(reason)}; make it inside the function, or keep the "
                "box in the program by threads=True"
            ) from error
        made.append((function, generates(box)))
    processes = processes_of(system)
    code = processes.add(dumps(partial(BoxWork, dumps(made))))
    window = window or _AHEAD * _MOST * processes.count
    return partial(ProcessCoordinator, state, window, processes, code)


def _portable(box: Box) -> Any:
    """Return what a process turns into the function of a box.

    The function of a decorated box has no name of its own: the name is the box.
    """
    module, name = getattr(box, "__module__", ""), getattr(box, "__qualname__", "")
    with_name = sys.modules.get(module) if module != "__main__" else None
    try:
        found = attrgetter(name)(with_name)
    except AttributeError:
        found = None
    if isinstance(found, Box) and found.function is box.function:
        return _Named(module, name)
    assert box.function is not None
    return accepting(box, box.function)


class _Named:
    """The function of a box that another process finds by the box's name."""

    def __init__(self, module: str, name: str) -> None:
        self._found = module, name

    def __reduce__(self) -> Any:
        return function_named, self._found
