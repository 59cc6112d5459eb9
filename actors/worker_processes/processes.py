"""The worker processes of a system, as the program sees them."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.actor import Actor
from callboard.core.errors import CallboardError
from callboard.core.threads.cores import usable_cores
from callboard.core.threads.interpreter import has_gil
from callboard.scheduling.config import Config
from callboard.scheduling.monitor import ProcessStatistics
from callboard.system import ActorSystem
from callboard.worker_processes.place import Code, ProcessPlace, Round, StateCode, WorkTraces
from callboard.worker_processes.view import ProcessesView
from callboard.worker_processes.worker import CHECK, ROUND, SNAPSHOT

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts


class WorkerProcesses:
    """The worker processes of a system. Safe in every thread."""

    def __init__(
        self, name: str, count: int, shared_memory: int, traces: WorkTraces | None = None
    ) -> None:
        self.count = count
        self.shared_memory = shared_memory
        self.traces = traces
        self.is_over = False
        self.view = ProcessesView(self)
        self._name = name
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._places: list[ProcessPlace] = []

    def start(self) -> None:
        """Start the processes, if they have not been started yet."""
        with self._lock:
            if not self._places and not self.is_over:
                names = [f"{self._name}-process-{at}" for at in range(self.count)]
                self._places = [ProcessPlace(self, name) for name in names]

    def add(self, operators: bytes) -> Code:
        """Add a segment."""
        return Code(next(self._numbers), operators)

    def add_states(self, operators: bytes, count: int) -> list[StateCode]:
        """Add an operator with states in `count` processes."""
        first = next(self._numbers)
        places = [(first + at) % self.count for at in range(count)]
        return [StateCode(next(self._numbers), operators, place) for place in places]

    def forget(self, code: Code) -> None:
        """Let the processes know that a segment's run has ended.

        A process that goes on with one of its rounds for long is ended.
        """
        code.ended = time.monotonic()
        for place in self._places:
            place.forget(code)

    def figures(self) -> list[ProcessStatistics]:
        """Return the figures of each process."""
        return [place.figures() for place in self._places]

    def at_work(self, codes: Container[Code]) -> list[str]:
        """Name the processes that work on rounds of these segments."""
        return [name for place in self._places if (name := place.is_at(codes))]

    def send(self, code: Code, parts: Parts) -> Future[Parts]:
        """Send a round, and return a future of its answer.

        It goes to the process that has the state, or to the one with the fewest rounds. The future
        fails with ProcessLost if the process ends while it works on the round; that of a state only
        if the next process cannot have the state, or ends with the round, too.
        """
        return self._request(code, parts, ROUND)

    def snapshot(self, code: StateCode) -> Future[Parts]:
        """Return a future of a state, while no round of it is on its way."""
        return self._request(code, [b""], SNAPSHOT)

    def begin_with(self, code: StateCode, state: bytes) -> None:
        """Note a state, while no round of it is on its way: later processes begin with it."""
        self.start()
        self._places[code.place].begin_with(code, state)

    def check(self, code: StateCode) -> Future[Parts]:
        """Return a future that says whether the process can begin with the state."""
        return self._request(code, [b""], CHECK)

    def _request(self, code: Code, parts: Parts, kind: int) -> Future[Parts]:
        if not self._places:
            self.start()
        one = Round(next(self._numbers), code, parts, kind)
        self.send_again(one)
        return one.answer

    def send_again(self, one: Round) -> None:
        """Send a round, also one whose process has ended before it began with it."""
        if one.code.ended is not None:
            one.answer.set_exception(CallboardError("the run has ended"))
            return
        if isinstance(one.code, StateCode):
            places = [self._places[one.code.place]]
        else:
            places = sorted(self._places, key=lambda place: place.waiting)
        for place in places:
            if place.send(one):
                return
        error = CallboardError(
            "the system has stopped its worker processes"
            if self.is_over
            else "no worker process is left, since they ended without an answer; the last one: "
            f"{places[-1].last_end}"
        )
        one.answer.set_exception(error)

    def stop(self) -> None:
        """End the processes, and wait for that."""
        with self._lock:
            self.is_over = True
        for place in self._places:
            place.stop()
        for place in self._places:
            place.join()


class ProcessKeeper(Actor[Any]):
    """Ends the worker processes of a system when that stops."""

    def __init__(self, processes: WorkerProcesses) -> None:
        self._processes = processes

    def receive(self, message: Any) -> None:
        """Take no message."""

    def on_stop(self) -> None:
        """End the processes."""
        self._processes.stop()


_of_systems: weakref.WeakKeyDictionary[ActorSystem, WorkerProcesses] = weakref.WeakKeyDictionary()
_starting = threading.Lock()


def count_of(config: Config) -> int:
    """Return the number of worker processes of a system.

    With "auto", it is that of the usable cores; but none on a single core, and none where threads
    run Python side by side.
    """
    if config.processes != "auto":
        return int(config.processes)
    cores = usable_cores()
    return cores if cores > 1 and has_gil() else 0


def processes_of(system: ActorSystem) -> WorkerProcesses:
    """Return the worker processes of a system, which start with its first graph.

    With "auto", they start with the first round.
    """
    with _starting:
        found = _of_systems.get(system)
        if found is None:
            config = system.config
            traces = system._observer.traces
            found = WorkerProcesses(system.name, count_of(config), config.shared_memory, traces)
            if config.processes != "auto":
                found.start()
            try:
                system.spawn(ProcessKeeper, found, dedicated=True, name="worker-processes")
            except BaseException:
                found.stop()
                raise
            system._observer.add_graph(found.view)
            _of_systems[system] = found
        return found
