"""Segments: operators in a row that worker processes run, and the processes of a system.

Stateless operators of a segment pass rows to each other in one process. Any process takes any
round: so a round whose process has ended is sent to another one. An operator with a state is a
segment by itself. It has one state in one process, or its keys are divided among all processes.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.streams.errors import ProcessLost
from callboard.streams.processes.work import Outcome
from callboard.streams.programs.program import Batch
from callboard.worker_processes.pickling import dumps, loads, parts_of
from callboard.worker_processes.processes import WorkerProcesses

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

State = tuple[tuple[Any, ...], list[Any]]
"""The head of a state, and its columns in pieces: see `Program.snapshot`."""

# The rows of a round that cannot be pickled, with their places; and the places of the others, if
# the round does not end there.
Refused = tuple[list[tuple[int, Exception]], list[int] | None]
Request = tuple["Parts", Refused | None]


class Segment:
    """The operators of a segment, and the encoding of its rounds."""

    chooses = False
    where = "worker processes"
    """The place of the operators, for statistics."""
    reason = ""
    """The reason for that place, if it was chosen."""

    def __init__(self, processes: WorkerProcesses, operators: bytes) -> None:
        self._processes = processes
        self._code = processes.add(operators)

    def encode(self, batch: Batch, fails: bool, /) -> Request:
        """Encode a round.

        Returns the encoded round and None; or, if rows cannot be pickled, these with their places,
        and the places of the others. With `fails` the round ends before the first such row.
        """
        rows, lineages = batch.rows, batch.lineages
        try:
            return self._parts_of((rows, lineages, batch.final, batch.end)), None
        except Exception as error:
            refused = _refused(rows, error, fails)
        kept = [*range(len(rows))]
        if fails:
            kept = kept[: refused[0][0]]
        else:
            bad = {place for place, _ in refused}
            kept = [place for place in kept if place not in bad]
        left = None if lineages is None else [lineages[place] for place in kept]
        found: Refused = refused, (None if fails else kept)
        final = batch.final and not fails
        return self._parts_of(([rows[place] for place in kept], left, final, batch.end)), found

    def send(self, request: Request, /) -> Future[Parts]:
        """Send a round to a process."""
        return self._processes.send(self._code, request[0])

    def decode(self, answer: Parts, /) -> Outcome:
        """Decode what came of a round in a process."""
        outcome: Outcome = loads(answer)
        return outcome

    def is_lost(self, error: BaseException | None, /) -> bool:
        """Return whether an exception says that the process ended with the round."""
        return isinstance(error, ProcessLost)

    def at_work(self) -> list[str]:
        """Name the processes that work on rounds of the segment."""
        return self._processes.at_work((self._code,))

    def close(self) -> None:
        """Let the processes forget the segment."""
        self._processes.forget(self._code)

    def _parts_of(self, value: Any) -> Parts:
        return parts_of(value)


class States:
    """The states of an operator, one in each of `count` processes."""

    where = Segment.where
    reason = ""

    def __init__(self, processes: WorkerProcesses, operators: bytes, count: int) -> None:
        self._processes = processes
        self._codes = processes.add_states(operators, count)
        self.count = count

    def encode(self, part: Any, /) -> Parts:
        """Encode the part of a round for one process."""
        return _whole(part)

    def send(self, request: tuple[int, Parts], /) -> Future[Parts]:
        """Send a part of a round, behind the number of its process."""
        number, part = request
        return self._processes.send(self._codes[number], part)

    def decode(self, answer: Parts, /) -> Any:
        """Decode what a process made of its part. Raises the exception that it sent instead."""
        return _value_of(answer)

    def snapshots(self) -> list[State]:
        """Return the state in each process, while no round is on its way.

        A process that ends later is replaced by one with this state.
        """
        answers = [self._processes.snapshot(code) for code in self._codes]
        found = []
        for code, answer in zip(self._codes, answers, strict=True):
            state = _value_of(_awaited(answer))
            self._processes.begin_with(code, state)
            found.append(pickle.loads(state))
        return found

    def restore(self, states: Sequence[State], /) -> None:
        """Give each process its state, before the first round."""
        for code, state in zip(self._codes, states, strict=True):
            self._processes.begin_with(code, dumps(state))
        for answer in [self._processes.check(code) for code in self._codes]:
            _value_of(_awaited(answer))

    def at_work(self) -> list[str]:
        """Name the processes that work on rounds of the operator."""
        return self._processes.at_work(self._codes)

    def close(self) -> None:
        """Let the processes forget the states."""
        for code in self._codes:
            self._processes.forget(code)


class StatefulSegment(Segment):
    """An operator with one state."""

    def __init__(self, processes: WorkerProcesses, operators: bytes) -> None:
        self._states = States(processes, operators, 1)
        self.snapshots, self.restore = self._states.snapshots, self._states.restore
        self.close = self._states.close  # type: ignore[method-assign]
        self.at_work = self._states.at_work  # type: ignore[method-assign]

    def send(self, request: Request, /) -> Future[Parts]:
        """Send a round to the process that has the state."""
        return self._states.send((0, request[0]))

    def _parts_of(self, value: Any) -> Parts:
        return _whole(value)


def _whole(value: Any) -> Parts:
    """Encode a value as one part, a copy: rounds of states are kept, when rows may have changed."""
    return [dumps(value)]


def _awaited(answer: Future[Parts]) -> Parts:
    """Wait for an answer, which needs no worker: the calling thread may be one."""
    done = threading.Event()
    answer.add_done_callback(lambda _: done.set())
    done.wait()
    return answer.result()


def _value_of(answer: Parts) -> Any:
    error, value = loads(answer)
    if error is not None:
        raise error
    return value


def _refused(rows: list[Any], error: Exception, only_first: bool) -> list[tuple[int, Exception]]:
    refused: list[tuple[int, Exception]] = []
    for place, row in enumerate(rows):
        try:
            dumps(row)
        except Exception as raised:
            raised.add_note("A row that a worker process receives must be picklable.")
            refused.append((place, raised))
            if only_first:
                break
    if not refused:
        raise error
    return refused
