"""The coordinator of a run with boxes in worker processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from callboard.core.captured import culprit
from callboard.core.text import safe_str
from callboard.nets.errors import NetEnded, NetError
from callboard.nets.kernel.node_builder import generates, is_portable, is_stateless, never
from callboard.nets.kernel.process_boxes import CallBatch, ProcessBoxNode
from callboard.nets.kernel.record import MovingRecord
from callboard.nets.running.batch_calls import called, rows_of
from callboard.nets.running.batch_coordinator import AHEAD, BatchCoordinator
from callboard.nets.running.box_choice import MOST, BoxChoice, set_batch_size
from callboard.nets.running.coordinator import Coordinator
from callboard.nets.running.messages import BatchAnswered
from callboard.nets.running.net_state import NetState
from callboard.nets.running.process_work import BoxWork, function_named, function_of
from callboard.nets.terms.network import Box
from callboard.system import ActorSystem
from callboard.worker_processes.errors import ProcessLost
from callboard.worker_processes.pickling import dumps, loads
from callboard.worker_processes.place import Code
from callboard.worker_processes.processes import WorkerProcesses, count_of, processes_of

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

# Processes that may end with a record.
_MOST_TRIES = 9


class ProcessCoordinator(BatchCoordinator):
    """Sends batches to processes.

    If a batch of a plain box fails as a whole, its halves are sent, until the record is found that
    it fails with. If that of a state does, its records are sent again in smaller batches.
    """

    def __init__(
        self,
        state: NetState,
        window: int,
        processes: WorkerProcesses,
        codes: dict[ProcessBoxNode, Sequence[Code]],
        choices: dict[ProcessBoxNode, BoxChoice],
    ) -> None:
        super().__init__(state, window, processes.count, choices)
        self.processes = processes
        self.codes = codes

    def _send(self, batch: CallBatch) -> None:
        box = batch.box
        choice = self.choices.get(box)
        begun = time.thread_time_ns()
        columns = batch.columns()
        try:
            body = dumps((len(batch), dumps(columns) if columns else None))
        except Exception as error:
            if choice is not None:
                choice.stay("a record cannot be pickled")
                self._call_here(batch)
                return
            error.add_note("A record that a worker process receives must be picklable.")
            self._divide(batch, error)
            return
        if choice is not None:
            choice.note_sent(batch, time.thread_time_ns() - begun)
        if not box.has_state:
            self.sent += 1
        coordinator = self.ref
        answer = self.processes.send(self.codes[box][batch.queue.place], [body])
        answer.add_done_callback(lambda of: coordinator.tell(BatchAnswered(batch, of)))

    def _divide(self, batch: CallBatch, error: Exception) -> None:
        """Send the halves of a batch that has failed; or note the error, if it is one record."""
        executor, queue = self.executor, batch.queue
        if len(batch) == 1:
            batch.note_failure(error)
            self._go_on_later()  # no answer will come
        elif queue.box.has_state:
            queue.batch_size = len(batch) // 2
            queue.take_back(batch, executor)
            if queue not in executor.unsent:
                executor.unsent.append(queue)
        else:
            for half in queue.divide(batch, executor):
                self._send(half)

    def _note_answer(self, message: BatchAnswered) -> None:
        batch = message.batch
        if not batch.box.has_state:
            self.sent -= 1
        if self.is_over:
            return
        error = message.answer.exception()
        if error is None:
            self._read(batch, message.answer.result())
        elif isinstance(error, ProcessLost):
            self._note_end(batch, error)
        elif self.processes.is_over:
            self._end(NetEnded("the run's system was stopped"))
        elif batch.box in self.choices:
            self.choices[batch.box].stay("there are no worker processes")
            self._call_here(batch)
        else:
            failure = NetError(f"boxes cannot run in worker processes: {error}")
            failure.__cause__ = error
            self._end(failure)
        self._pass_on_later(batch.queue)

    def _read(self, batch: CallBatch, answer: Parts) -> None:
        begun = time.thread_time_ns()
        choice = self.choices.get(batch.box)
        try:
            error, outputs, errors, refused, spent, worst, processor = loads(answer)
        except Exception as raised:
            error, refused = raised, []
        if choice is not None and (error is not None or refused):
            what = "an output" if error is None else "the function or a record"
            choice.stay(f"{what} cannot be pickled")
        if error is not None:
            if choice is None:
                self._divide(batch, error)
            else:
                self._call_here(batch)
            return
        batch.box.note_tries(len(batch), spent, worst)
        set_batch_size(batch, spent)
        if choice is not None:
            self._call_refused_here(batch, refused, outputs, errors)
            choice.note_answer(batch, time.thread_time_ns() - begun, spent, processor)
        batch.note_answer(outputs, errors)

    def _note_end(self, batch: CallBatch, error: ProcessLost) -> None:
        batch.tries += 1
        if batch.box.has_state:
            batch.note_lost(error)
        elif len(batch) > 1:
            self._divide(batch, error)
        elif batch.tries < _MOST_TRIES:
            self._send(batch)
        else:
            text = f"the record was sent to {_MOST_TRIES} worker processes, and each ended with it"
            batch.note_failure(ProcessLost(f"{text}; {error}"))

    def _call_refused_here(
        self, batch: CallBatch, refused: list[int], outputs: list[Any], errors: dict[int, Any]
    ) -> None:
        """Call the box again for the records whose outputs a process could not send."""
        if not refused:
            return
        rows = [*rows_of(batch.columns(), len(batch))]
        function: Any = batch.box.function
        again = [rows[place] for place in refused]
        found, failed, *_ = called(function, again, generates=batch.box.generates)
        for at, place in enumerate(refused):
            outputs[place] = found[at]
            errors.pop(place, None)
            if at in failed:
                errors[place] = failed[at]

    def _end(self, failure: NetError | None, reported: MovingRecord | None = None) -> None:
        if self.is_over:
            return
        super()._end(failure, reported)
        for codes in self.codes.values():
            for code in codes:
                self.processes.forget(code)

    _HANDLERS: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **Coordinator._HANDLERS,
        BatchAnswered: _note_answer,
    }


def moves_in(system: ActorSystem) -> Callable[[Box], bool]:
    """Return what tells whether a box may run in the processes of a system."""
    if system.config.processes != "auto":
        return is_portable
    return is_stateless if count_of(system.config) else never


def coordinator_of(
    system: ActorSystem, state: NetState, window: int | None
) -> partial[ProcessCoordinator]:
    """Return what makes the coordinator of a net with boxes that may run in processes.

    Raises NetError, which names what cannot be pickled; with "auto", that box stays.
    """
    chooses = system.config.processes == "auto"
    if chooses:
        state.begin_here()
    encoded: list[tuple[ProcessBoxNode, bytes]] = []  # before any process is started
    stays: list[ProcessBoxNode] = []
    for box, node in state.moving:
        try:
            encoded.append((node, _encoded(node.path, box)))
        except NetError:
            if not chooses:
                raise
            stays.append(node)
    processes = processes_of(system)
    codes: dict[ProcessBoxNode, Sequence[Code]] = {}
    for node, made in encoded:
        if node.has_state:
            codes[node] = processes.add_states(made, processes.count)
            node.divide(processes.count)
        else:
            codes[node] = [processes.add(made)]
    choices = {}
    if chooses:
        count = processes.count
        choices = {node: BoxChoice(node, count, AHEAD * count) for node in codes}
        for node in stays:
            BoxChoice(node, count, AHEAD * count).stay("the function cannot be pickled")
    window = window or AHEAD * MOST * processes.count
    return partial(ProcessCoordinator, state, window, processes, codes, choices)


def _encoded(path: str, box: Box) -> bytes:
    """Encode a box for the processes. Raises NetError, which names what cannot be pickled."""
    try:
        return dumps(partial(BoxWork, path, dumps(_portable(box)), generates(box)))
    except Exception as error:
        place, found, reason = culprit(path, box.function, dumps, error)
        raise NetError(
            f"the box {path} cannot run in a worker process: {place} ({type(found).__name__}) "
            f"cannot be pickled: {safe_str(reason)}; make it inside the function, or keep the "
            "box in the program by threads=True"
        ) from error


def _portable(box: Box) -> Any:
    """Return what a process turns into the function of a box.

    The function or class of a decorated box has no name of its own: the name is the box.
    """
    module, name = getattr(box, "__module__", ""), getattr(box, "__qualname__", "")
    with_name = sys.modules.get(module) if module != "__main__" else None
    try:
        found = attrgetter(name)(with_name)
    except AttributeError:
        found = None
    if isinstance(found, Box) and found.function is box.function:
        return _Named(module, name)
    return function_of(box)


class _Named:
    """The function of a box that another process finds by the box's name."""

    def __init__(self, module: str, name: str) -> None:
        self._found = module, name

    def __reduce__(self) -> Any:
        return function_named, self._found
