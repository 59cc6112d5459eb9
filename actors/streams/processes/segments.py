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
from callboard.streams.processes.work import Division, Outcome
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
        return self.decode_all([_awaited(answer) for answer in self.fetch()])

    def fetch(self) -> list[Future[Parts]]:
        """Ask each process for its state, while no round is on its way."""
        return [self._processes.snapshot(code) for code in self._codes]

    def decode_all(self, answers: Sequence[Parts], /) -> list[State]:
        """Decode the states that were asked for. Raises the exception that came in place of one."""
        found = []
        for code, answer in zip(self._codes, answers, strict=True):
            state = _value_of(answer)
            self._processes.begin_with(code, state)
            found.append(pickle.loads(state))
        return found

    def restore(self, states: Sequence[State], /) -> None:
        """Give each process its state, before the first round."""
        for answer in self.begin_with([dumps(state) for state in states]):
            check(_awaited(answer))

    def begin_with(self, states: Sequence[bytes], /) -> list[Future[Parts]]:
        """Give each process its encoded state. The futures say whether it can begin with it."""
        for code, state in zip(self._codes, states, strict=True):
            self._processes.begin_with(code, state)
        return self.checks()

    def checks(self) -> list[Future[Parts]]:
        """Ask each process whether it has the operator: see check()."""
        return [self._processes.check(code) for code in self._codes]

    def note_states(self, states: Sequence[State], /) -> None:
        """Note the state of each process, while no round is on its way.

        Later processes begin with it.
        """
        for code, state in zip(self._codes, states, strict=True):
            self._processes.begin_with(code, dumps(state))

    def at_work(self) -> list[str]:
        """Name the processes that work on rounds of the operator."""
        return self._processes.at_work(self._codes)

    def close(self) -> None:
        """Let the processes forget the states."""
        for code in self._codes:
            self._processes.forget(code)


class ShuffledStates(States):
    """The same, behind stateless operators, which any process runs and which divide the rounds.

    `dividing` are these operators, and `operators` those with the states.
    """

    def __init__(
        self, processes: WorkerProcesses, dividing: bytes, operators: bytes, count: int
    ) -> None:
        super().__init__(processes, operators, count)
        self.wants_keys = False
        """Whether keys are wanted here."""
        self._rounds = Segment(processes, dividing)
        self.is_lost = self._rounds.is_lost

    def encode_round(self, batch: Batch, fails: bool, /) -> Request:
        """Encode a round, which is to be divided. See `Segment.encode`."""
        return self._rounds.encode(batch, fails)

    def send(self, request: tuple[int, Parts], /) -> Future[Parts]:
        """Send a part of a round, behind the number of its process; behind -1, a round."""
        number, parts = request
        if number >= 0:
            return super().send(request)
        return self._rounds.send(([b"\1" if self.wants_keys else b"", *parts], None))

    def division_of(self, answer: Parts, /) -> Division:
        """Decode what a process made of a round, but not the parts of it for other processes."""
        head, *parts = answer
        # Parts are kept, and so are no views of the shared memory.
        return *pickle.loads(head), [bytes(part) for part in parts]

    def at_work(self) -> list[str]:
        """Name the processes that work on rounds of the operators."""
        return sorted({*super().at_work(), *self._rounds.at_work()})

    def close(self) -> None:
        """Let the processes forget the operators, with their states."""
        super().close()
        self._rounds.close()


class StatefulSegment(Segment):
    """An operator with one state."""

    def __init__(self, processes: WorkerProcesses, operators: bytes) -> None:
        self._states = states = States(processes, operators, 1)
        self.snapshots, self.restore = states.snapshots, states.restore
        self.fetch, self.decode_all = states.fetch, states.decode_all
        self.begin_with, self.checks = states.begin_with, states.checks
        self.close = self._states.close  # type: ignore[method-assign]
        self.at_work = self._states.at_work  # type: ignore[method-assign]

    def send(self, request: Request, /) -> Future[Parts]:
        """Send a round to the process that has the state."""
        return self._states.send((0, request[0]))

    def _parts_of(self, value: Any) -> Parts:
        return _whole(value)


def check(answer: Parts) -> None:
    """Raise the exception that an answer has, if any."""
    _value_of(answer)


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
