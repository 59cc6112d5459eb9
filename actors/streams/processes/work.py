"""Segments as a worker process runs them."""

from __future__ import annotations

import pickle
import resource
import time
from collections.abc import Callable, Sequence
from resource import getrusage
from typing import TYPE_CHECKING, Any

from callboard.streams.errors import FailedRow, StreamError
from callboard.streams.programs.joins.lanes_in_processes import ProcessLane
from callboard.streams.programs.program import Batch, Program, Raised
from callboard.streams.programs.rows.in_processes import pass_through
from callboard.streams.programs.rows.keyed_parts import (
    FIRST,
    answer_part,
    divided_parts,
    keys_of,
    packed,
    state_of,
    unpacked,
    watermarks_of,
)
from callboard.worker_processes.choice import WAITS
from callboard.worker_processes.pickling import (
    dumps_in_process,
    loads,
    parts_in_process,
    sendable,
)

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
_UNSENDABLE = "An output of an operator in a worker process must be picklable."


Ending = tuple[str, int | None, Any, str, BaseException | None]
"""The end of a round by an error: the arguments of a StreamError, and its cause."""

Outcome = tuple[list[Any], Ending | None, list[tuple[int, int, int, int]], list[Any], int]
"""The outcome of a round: outputs with their lineages, by port; what ended it; the counts of each
operator, as `pass_through` returns them; the rows that were dropped; and the working time
in nanoseconds, or -1 if an output could not be pickled."""


_OFTEN = 16  # rows, of which one at least lets others have the core

Clocks = tuple[int, int, int]


def clocks() -> Clocks:
    """Return the thread's processor time, the time, and how often the thread has waited."""
    return time.thread_time_ns(), time.monotonic_ns(), getrusage(_THREAD).ru_nvcsw


def working_time(begun: Clocks, rows: int) -> int:
    """Return how many nanoseconds functions have worked since then, on so many rows.

    It is their processor time; or all of the time if they wait, but not if others had the core, or
    the interpreter's lock.
    """
    spent, elapsed, waits = (now - then for now, then in zip(clocks(), begun, strict=True))
    return elapsed if elapsed > WAITS * spent and waits * _OFTEN >= rows else spent


Passed = tuple[Ending | None, list[tuple[int, int, int, int]], list[Any]]
"""The outcome of stateless operators whose outputs are divided by key: what ended the round, the
counts, and the rows that were dropped."""

Division = tuple[
    Passed,
    list[Any] | tuple[int, dict[int, Any]],
    list[Any] | None,
    bool,
    list[Any] | None,
    tuple[bytes, dict[int, Any]] | None,
    list[Any],
]
"""Behind that, the number of outputs, with the watermarks and the rows whose keys raised, by their
places; the lineages; whether it is the last round; None; the partitions of the outputs, and the
errors of keys; and the encoded parts for the processes that get some. Or all outputs, and in place
of None their keys: then the program has to divide them."""


class DroppedRows:
    """The rows of a round that operators dropped, for the run to count."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []

    def _skipped(self, failure: FailedRow) -> None:
        self.found.append(("skipped", failure))

    def _late(self, operator: str, row: Any) -> None:
        self.found.append(("late", (operator, row)))


class LocalWork:
    """The operators of a segment in the program itself."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self._dropped = DroppedRows()
        for program in programs:
            program.row_counts = self._dropped

    def run(self, batch: Batch) -> Outcome:
        """Run a round."""
        self._dropped.found = []
        begun = clocks()
        alone = Batch(batch.rows, 0, batch.final, batch.lineages, batch.end)  # as in a process
        into, failure, counts = pass_through(self._programs, alone)
        spent = working_time(begun, len(batch.rows))
        outputs = [(one.rows, one.lineages) for one in into]
        ended = None
        if failure is not None:
            ended = _ending_of(failure, failure.__cause__)
        return outputs, ended, counts, self._dropped.found, spent

    def close(self) -> None:
        """Close what the operators have open."""
        for program in self._programs:
            program.close()


class SegmentWork:
    """The operators of a segment: stateless ones, or one with a state.

    `names` are theirs, and `ports` is the number of outputs of the last one. If they cannot be
    made, for instance because a module cannot be imported here, each round fails.
    """

    is_divided = False

    def __init__(self, names: list[str], ports: int, operators: bytes) -> None:
        self._names, self._ports = names, ports
        self.name = " + ".join(names)
        self.rows = 0
        """The rows of the latest round."""
        self._dropped = DroppedRows()
        self._programs: list[Program] = []
        self._error: Exception | None = None
        try:
            makers: list[Callable[[], Program]] = pickle.loads(operators)
            for make in makers:
                self._programs.append(make())
                self._programs[-1].row_counts = self._dropped
        except Exception as error:
            self._error = error

    def answer(self, parts: Parts) -> Parts:
        """Return the encoded outputs of a round, or why it could not be run."""
        self._dropped.found = []
        error = self._error
        if error is None:
            try:
                rows, lineages, final, end = loads(parts)
                self.rows = len(rows)
            except Exception as raised:
                error = raised
            else:
                return self._run(Batch(rows, 0, final, lineages, end))
        failure = self._names[0], None, None, "", sendable(error)
        outputs: list[Any] = [([], None) for _ in range(self._ports)]
        counts = [(0, 0, 0, 0)] * len(self._names)
        return [dumps_in_process((outputs, failure, counts, [], 0))]

    def close(self) -> None:
        """Close what the operators have open."""
        for program in self._programs:
            program.close()

    # --- of an operator with a state --------------------------------------------------------------

    def restore(self, state: Parts) -> None:
        """Begin with a state."""
        try:
            head, pieces = loads(state)
            if self._error is None:
                self._programs[0].restore(head, pieces, None, self.is_divided)
        except Exception as error:
            self._error = error

    def check(self) -> bytes:
        """Say whether the operator could be made, with its state."""
        return dumps_in_process((sendable(self._error), None))

    def state(self) -> bytes:
        """Return the encoded state, or why there is none."""
        try:
            if self._error is not None:
                raise self._error
            found = dumps_in_process(state_of(self._programs[0], self.is_divided))
            return dumps_in_process((None, found))
        except Exception as error:
            return dumps_in_process((sendable(error), None))

    # --- rounds -----------------------------------------------------------------------------------

    def _run(self, batch: Batch) -> Parts:
        begun = clocks()
        into, failure, counts = pass_through(self._programs, batch)
        spent = working_time(begun, len(batch.rows))
        last = self._programs[-1]
        if last.errors == "side":
            port = last.ports.index("failures")
            into[port].rows = [
                _without_context(one) if isinstance(one, FailedRow) else one
                for one in into[port].rows
            ]
        outputs = [(batch.rows, batch.lineages) for batch in into]
        ended = None
        if failure is not None:
            ended = _ending_of(failure, sendable(failure.__cause__))
        try:
            return parts_in_process((outputs, ended, counts, self._sendable_dropped(), spent))
        except Exception as error:
            return self._up_to(into, error, counts)

    def _sendable_dropped(self) -> list[tuple[str, Any]]:
        return [
            (kind, _without_context(what) if kind == "skipped" else what)
            for kind, what in self._dropped.found
        ]

    def _up_to(self, into: list[Batch], error: Exception, counts: list[Any]) -> Parts:
        """Encode the outputs before the first one that cannot be pickled, which ends the run."""
        for batch in into:
            for at, row in enumerate(batch.rows):
                try:
                    dumps_in_process(row)
                except Exception as raised:
                    error = raised
                    batch.rows = batch.rows[:at]
                    if batch.lineages is not None:
                        batch.lineages = batch.lineages[:at]
                    break
        outputs = [(batch.rows, batch.lineages) for batch in into]
        error.add_note(_UNSENDABLE)
        ended = self._programs[-1].name, None, None, "", sendable(error)
        return parts_in_process((outputs, ended, counts, self._sendable_dropped(), -1))


class ShufflingWork(SegmentWork):
    """Stateless operators, and the division of their outputs by key among `count` processes.

    The last of the operators is the keyed one, which has no states here.
    """

    def __init__(self, names: list[str], count: int, operators: bytes) -> None:
        super().__init__(names, 1, operators)
        self._count = count

    def answer(self, parts: Parts) -> Parts:
        """Return the division of what came of a round, and its parts: see `Division`."""
        self._dropped.found = []
        wants_keys, *encoded = parts
        try:
            if self._error is not None:
                raise self._error
            rows, lineages, final, end = loads(encoded)
            self.rows = len(rows)
        except Exception as error:
            counts = [(0, 0, 0, 0)] * (len(self._names) - 1)
            return self._nothing((self._names[0], None, None, "", sendable(error)), counts)
        *members, keyed = self._programs
        (batch,), failure, counts = pass_through(members, Batch(rows, 0, final, lineages, end))
        ended = None
        if failure is not None:
            ended = _ending_of(failure, sendable(failure.__cause__))
        try:
            divided, parted = divided_parts(keyed, batch, self._count)
        except BaseException as error:  # no error of a function; for instance SystemExit
            return self._nothing((keyed.name, None, None, "", sendable(error)), counts)
        passed = ended, counts, self._sendable_dropped()
        if parted is None or wants_keys:
            return self._with_keys(passed, batch, keys_of(divided))
        partitions, errors, groups = parted
        size = len(batch.rows)
        known = {**watermarks_of(batch), **{place: batch.rows[place] for place in errors}}
        division = partitions, {place: sendable(error) for place, error in errors.items()}
        try:
            head = passed, (size, known), batch.lineages, batch.final, None, division
            return [
                dumps_in_process(head),
                *[dumps_in_process((size, batch.final, each)) for each in groups],
            ]
        except Exception:
            return self._with_keys(passed, batch, keys_of(divided))

    def _with_keys(self, passed: Passed, batch: Batch, keys: list[Any]) -> Parts:
        """Return the outputs with their keys.

        Those before the first one that cannot be pickled, which ends the run; a key that cannot is
        an error of its row.
        """
        ended, counts, dropped = passed
        for at, key in enumerate(keys):
            try:
                dumps_in_process(batch.rows[at])
            except Exception as error:
                error.add_note(_UNSENDABLE)
                ended = self._names[-2], None, None, "", sendable(error)
                batch = Batch(
                    batch.rows[:at], 0, False, batch.lineages and batch.lineages[:at], batch.end
                )
                keys = keys[:at]
                break
            if isinstance(key, Raised):
                keys[at] = Raised(_sendable(key.error))
                continue
            try:
                dumps_in_process(key)
            except Exception as error:
                error.add_note("The key of a row that a worker process receives must be picklable.")
                keys[at] = Raised(_sendable(error))
        passed = ended, counts, dropped
        return [dumps_in_process((passed, batch.rows, batch.lineages, batch.final, keys, None))]

    def _nothing(self, ended: Ending, counts: list[Any]) -> Parts:
        passed = ended, counts, self._sendable_dropped()
        return [dumps_in_process((passed, [], None, False, [], None))]


class KeyedWork(SegmentWork):
    """A keyed operator, with the states of some partitions.

    If it `leaves_keys`, the program puts them in front of the outputs of rows.
    """

    is_divided = True

    def __init__(self, name: str, leaves_keys: bool, operators: bytes) -> None:
        super().__init__([name], 1, operators)
        if leaves_keys and self._error is None:
            self._programs[0].leave_keys()  # type: ignore[attr-defined]

    def answer(self, parts: Parts) -> Parts:
        """Return the encoded outputs of a part of a round, or why it could not be run.

        With the outputs of its sub-batches come the rows that were dropped; the rows in errors, by
        places, if the program does not have them; whether all outputs could be encoded; and the
        working time.
        """
        self._dropped.found = []
        try:
            if self._error is not None:
                raise self._error
            *first, encoded = parts
            part = loads([encoded])
            if first:  # it comes from another process
                part = *FIRST.unpack(first[0]), *part
            self.rows = sum(len(places) for _, places, *_ in part[-1]) // 4  # of 32 bits each
            begun = clocks()
            results = answer_part(self._programs[0], part)
            spent = working_time(begun, self.rows)
        except BaseException as error:  # no error of a function; for instance SystemExit
            return [dumps_in_process((sendable(error), None))]
        failed = _failed_rows(part[-1], results) if first else {}
        for _, _, errors, marks in results:
            for place, raised in errors.items():
                errors[place] = sendable(raised)
            for place, answers in marks.items():
                marks[place] = [_sendable_mark(*each) for each in answers]
        skipped = [failure for _, failure in self._sendable_dropped()]
        try:
            whole = [(packed(outs), *rest) for outs, *rest in results]
            return parts_in_process((None, (whole, skipped, failed, True, spent)))
        except Exception:
            results = [
                _without_unsendable(memoryview(places).cast("I"), *result)
                for (_, places, *_), result in zip(part[-1], results, strict=True)
            ]
            return parts_in_process((None, (results, skipped, failed, False, spent)))


def _failed_rows(groups: list[Any], results: list[Any]) -> dict[int, Any]:
    """Return the rows in errors, by their places in the round."""
    found = {}
    for (_, places, rows, keys), (_, _, errors, _) in zip(groups, results, strict=True):
        for place, row, key in zip(
            memoryview(places).cast("I"), unpacked(rows), unpacked(keys), strict=True
        ):
            if place in errors and not isinstance(key, Raised):
                found[place] = row
    return found


class LaneWork(SegmentWork):
    """A lane of a join."""

    def answer(self, parts: Parts) -> Parts:
        """Return the encoded partners of a round's rows, or why they could not be found.

        With them comes how many pairs were compared, and how long it took.
        """
        try:
            if self._error is not None:
                raise self._error
            rows = loads(parts)
            self.rows = len(rows[0])
            begun = time.monotonic_ns()
            (lane,) = self._programs
            assert isinstance(lane, ProcessLane)
            ends, numbers, errors, compared = lane.found(*rows)
            spent = time.monotonic_ns() - begun
        except BaseException as error:  # no error of a function; for instance SystemExit
            return [dumps_in_process((sendable(error), None))]
        sent = {place: sendable(error) for place, error in errors.items()}
        return [dumps_in_process((None, (ends, numbers, sent, compared, spent)))]


def _sendable_mark(
    born: int, outputs: list[Any] | None, error: BaseException | None
) -> tuple[int, list[Any] | None, BaseException | None]:
    if outputs is not None:
        outputs = [
            Raised(_sendable(each.error)) if isinstance(each, Raised) else each for each in outputs
        ]
    return born, outputs, sendable(error)


def _without_unsendable(
    places: memoryview,
    outs: list[Any],
    ends: list[int] | None,
    errors: dict[int, Any],
    marks: dict[int, list[tuple[int, list[Any] | None, Any]]],
) -> tuple[Any, ...]:
    """Replace the first output of a row that cannot be pickled by an error, which ends the run.

    The same for all outputs at watermarks. `places` are those of the rows in their round.
    """
    ends = ends or [*range(1, len(places) + 1)]
    begin = 0
    for at, (place, end) in enumerate(zip(places, ends, strict=False)):
        error = _error_of(outs[begin:end])
        if error is not None:
            outs, ends, errors = outs[:begin], ends[:at], {**errors, place: error}
            break
        begin = end
    for answers in marks.values():
        for at, (born, made, error) in enumerate(answers):
            if made is not None and (error := _error_of(made)) is not None:
                answers[at] = born, None, error
    return outs, ends, errors, marks


def _error_of(outputs: list[Any]) -> BaseException | None:
    """Return why outputs cannot be pickled; None: they can."""
    try:
        dumps_in_process(outputs)
    except Exception as error:
        error.add_note(_UNSENDABLE)
        return sendable(error)
    return None


def _without_context(failure: FailedRow) -> FailedRow:
    return FailedRow(failure.operator, failure.serial, failure.row, _sendable(failure.error))


def _sendable(error: Exception) -> Exception:
    made = sendable(error)
    assert isinstance(made, Exception)
    return made


def _ending_of(failure: StreamError, cause: BaseException | None) -> Ending:
    return failure.operator, failure.serial, failure.row, failure.when, cause
