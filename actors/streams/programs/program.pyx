"""Programs: the work of a graph's stages on batches of rows.

A run hands each stage's program its batches, round by round. A round has one batch on each edge of the graph, often
an empty one. How many threads may be in one program at once is its `kind`:

    stateless     any number, on different rounds, in any order
    stateful      one at a time, rounds in order
    partitioned   the same by process(); or divided, where divide() is stateless, process_sub_batch() is
                  stateful for each partition by itself, and gather() is stateless. A run uses one
                  of the two ways for a program from its first round to its last.

A program with several inputs overrides process_many(), and is stateful.
"""

import cython

from cpython.object cimport PyObject
from libc.math cimport NAN, isfinite
from libc.stdint cimport INT64_MAX

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport instant_of
from callboard.streams.programs.unawaited cimport refuse_unawaited

from datetime import datetime

from callboard.streams.errors import FailedRow, StreamError

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject* what)
    bint PyIter_Check(object what)

# Stands for a port in Program.sides: a late row that is counted, and dropped.
cdef Py_ssize_t nowhere = -1


@cython.final
cdef class Watermark:
    """A punctuation among the rows: no row with a time before `time` is expected any more.

    `time` is anything that can be compared with the rows' times, including infinity. NaN and None raise ValueError.
    Operators forward watermarks; windows by event time that end at `time` or before are closed. A watermark is an input
    of an operator like any row, so serial numbers count it.
    """

    def __init__(self, time):
        check_comparable(time)
        self.time, self.instant = time, instant_of(time)

    def __eq__(self, other):
        return isinstance(other, Watermark) and self.instant == (<Watermark>other).instant

    def __hash__(self):
        return hash((Watermark, self.instant))

    def __repr__(self):
        return f"Watermark({self.time!r})"

    def __reduce__(self):
        return Watermark, (self.time,)


cdef int check_comparable(time) except -1:
    if time is None or time != time:
        raise ValueError(f"a watermark's time must be comparable, got {time!r}")
    return 0


cdef double time_as_number(object instant) noexcept:
    """Return an instant as a number, a datetime's in seconds since 1970; NaN for infinity and other types."""
    cdef double number
    try:
        number = instant.timestamp() if isinstance(instant, datetime) else instant
    except Exception:  # a tuple, or a time of the user's own
        return NAN
    return number if isfinite(number) else NAN


cdef Watermark watermark_at(time):
    """Make a watermark as its class does, without a call in Python."""
    cdef Watermark watermark = Watermark.__new__(Watermark)
    check_comparable(time)
    watermark.time, watermark.instant = time, instant_of(time)
    return watermark


@cython.final
cdef class Batch:
    """Rows of one round."""

    def __init__(self, list rows, int64_t first=0, bint final=False, list lineages=None, end=None):
        self.rows = rows
        self.first = first
        self.final = final
        self.lineages = lineages
        self.end = end

    cpdef Batch follower(self):
        """Return an empty batch for the outputs of this one. The run sets its `first`."""
        cdef Batch batch = Batch.__new__(Batch)
        batch.rows = []
        batch.final = self.final
        if self.lineages is not None:
            batch.lineages = []
            batch.end = self.end
        return batch

    cdef int hide(self) except -1:
        """Have the garbage collector not look through it. For a batch on its way through stages, which
        alone refer to it and to its list, so no cycle leads through them; and there are hundreds."""
        PyObject_GC_UnTrack(<PyObject*>self.rows)
        PyObject_GC_UnTrack(<PyObject*>self)
        return 0

    def __len__(self):
        return len(self.rows)

    def __repr__(self):
        return f"Batch({self.rows!r}, first={self.first}, final={self.final}, lineages={self.lineages!r})"


@cython.final
cdef class SubBatchOutputs:
    """The outputs of one sub-batch of a divided batch."""

    def __cinit__(self):
        self.outs, self.errors, self.marks = [], {}, {}


@cython.final
cdef class DividedBatch:
    """A batch that is divided among partitions, as scheduling/flow/keyed_division.hpp says."""

    cdef int begin(self, Batch batch, Py_ssize_t partitions) except -1:
        self.batch = batch
        self.error = batch.error
        self.keys = [None] * len(batch.rows)
        self.outputs = []
        self.division.batch = <void*>self
        self.division.divide_among(partitions, len(batch.rows))
        return 0

    cdef void add_watermark(self, bint marks_time) noexcept:
        """Divide a watermark, which is the next row."""
        if marks_time:
            self.division.add_to_all()
        else:
            self.division.add_to_none()

    cdef int check_unchanged(self) except -1:
        """Check that what was divided is as long as it was."""
        if not self.division.rows() == <size_t>len(self.batch.rows) == <size_t>len(self.keys):
            raise ValueError("the batch was changed since it was divided")
        return 0

    @property
    def partitions(self):
        """The numbers of the partitions that get rows of the batch, one for each sub-batch."""
        return [self.division.sub_batch(number).partition for number in range(self.division.count())]


cdef class Ending:
    """How a run ends."""

    def __cinit__(self):
        self.stopped_at.store(INT64_MAX)
        self.positions = {}
        self.resting = []

    cdef int fail(self, int64_t serial, object error) except -1:
        """A round came to its end with an error. The run's is that of the earliest round; of one round,
        that of the latest operator, to which earlier rows came."""
        cdef object key = (serial, -self.position_of(error))
        assert holds(serial >= 0 and error is not None)
        with cython.critical_section(self):
            if self.stopped_at.load() >= 0 and (self.failed is None or key < self.failed[0]):
                self.failed = (key, error)
                self.stopped_at.store(serial)
        self.look_again()
        return 0

    cdef void look_again(self) noexcept:
        """Have programs that rest see what is dropped."""
        cdef Program program
        for program in self.resting or ():
            program.look_again()

    cdef object later(self, object first, object second):
        """Return that of the later operator of two errors of one round; either may be None."""
        if first is None or second is None:
            return first if second is None else second
        return second if self.position_of(second) > self.position_of(first) else first

    cdef object position_of(self, object error):
        return self.positions.get(error.operator, 0)


@cython.no_gc_clear  # the end of its flow, in a circle that the collector breaks, asks `ending`
cdef class Program:
    """The base of all programs.

    `errors` says what an exception of the user's code means. "fail" raises StreamError, and the outputs of the rows
    before are in `into`; "skip" counts the row in `row_counts`; "side" puts a FailedRow on the port "failures". Either
    way a row that raised has no other output.
    """

    def __init__(self, str name, *, str kind="stateless", tuple ports=("out",), str errors="fail",
                 bint late_is_counted=False):
        self.name = name
        self.kind = kind
        self.ports = ports
        self.errors = errors
        self.failures = ports.index("failures") if errors == "side" else -1
        self.sides = {side: port for port, side in enumerate(ports) if port}
        if late_is_counted:
            self.sides["late"] = nowhere
        self.sides = self.sides or None

    @property
    def needs_no_order(self):
        """Whether several threads may work on it at once, on different rounds."""
        return self.kind == "stateless" and self.ns_per_row == 0

    cpdef Py_ssize_t divided_among(self, int lanes) except -1:
        """Choose the number of partitions for a number of lanes, and return it."""
        return self.partitions

    cdef int enter(self, Ending ending, int position, int inputs) except -1:
        """Become a part of this run alone, at this place of its graph, with this number of inputs."""
        if self.stage != NULL:
            raise RuntimeError(f"the program of {self.name!r} is already in a run")
        ending.positions[self.name] = position
        assert holds(inputs > 0)
        self.ending = ending
        self.from_chunks.resize(inputs)
        self.passed.resize(len(self.ports))
        return 0

    cdef void look_again(self) noexcept:
        pass

    cdef void leave(self) noexcept:
        pass

    cpdef process(self, Batch batch, list into):
        """Append to the batches `into`, one for each port, what the batch gives.

        If it raises StreamError, what the rows before gave stands in `into`. To end as a run row by row would, a
        run hands that on to the end of the graph, though not as the last round. Then it fails, with the last
        StreamError that came of it.
        """
        cdef Py_ssize_t at = 0
        while True:
            try:
                self.work(batch, &at, into)
                return
            except Exception as error:
                if self.ends_with(error):
                    raise
                self.failed(batch, at, error, into)
                at += 1

    cpdef process_many(self, list batches, list into):
        """Append to `into` what the round's batches give, one for each input."""
        self.process(batches[0], into)

    cpdef DividedBatch divide(self, Batch batch):
        """Divide a batch among the partitions that have something to do with it."""
        raise NotImplementedError

    cpdef process_sub_batch(self, DividedBatch divided, uint32_t number):
        """Do a partition's sub-batch."""
        raise NotImplementedError

    cpdef gather(self, DividedBatch divided, list into):
        """Append to `into` what the sub-batches gave, in the order of the rows."""
        raise NotImplementedError

    cpdef bint wants_heartbeats(self):
        """Whether it needs calls every `looks_every` seconds until something comes again. In any thread."""
        return False

    cpdef tuple waiting_rows(self):
        """Return the number of rows that wait here for other inputs, and the numbers of these inputs. In any thread."""
        return 0, []

    cpdef tuple work_of_lanes(self):
        """How many pairs of rows each lane has compared, where there are any. In any thread."""
        return ()

    cpdef bint count_keys(self, int most):
        """From now on, count which keys come most often; whether it has keys. Before the first batch."""
        return False

    cpdef tuple hot_keys(self):
        """The keys that came most often, as Counted, if they are counted. In any thread."""
        return ()

    @property
    def serials(self):
        """The serial number of the next row of each port."""
        return [number for number in self.passed]

    @serials.setter
    def serials(self, list numbers):
        cdef size_t port
        if <size_t>len(numbers) != self.passed.size():
            raise ValueError(f"{self.name!r} has {self.passed.size()} outputs, got {len(numbers)}")
        for port in range(self.passed.size()):
            self.passed[port] = numbers[port]

    cpdef list snapshot(self, object kept):
        """Return the state, while no batch is on its way: a tuple of values, and after it Columns; [] without a state.
        `kept` is the SavedRows of the snapshot."""
        return []

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        """Take a state back, before the first batch: the tuple, and all columns as lists, each of them whole or in
        pieces. `divided` says that batches will be divided."""
        raise ValueError("it has no state")

    cpdef close(self):
        """Let go what the program holds outside of memory. Called once, however the run ended."""

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        raise NotImplementedError

    cdef int failed(self, Batch batch, Py_ssize_t at, object error, list into) except -1:
        """Do with an exception what `errors` says. `at` is one past the last row at the stream's end."""
        cdef bint of_a_row = at < len(batch.rows)
        row = batch.rows[at] if of_a_row else None
        lineage = None
        if batch.lineages is not None:
            lineage = batch.lineages[at] if of_a_row else batch.end
        if not of_a_row and self.errors == "fail":
            self.end_with(StreamError(self.name, batch.first + at, None, self.hook()), error)
        return self.failed_at(batch.first + at, row, error, lineage, into)

    cdef str hook(self):
        """In which of the user's functions it fails behind a row, as errors say it."""
        return "at the end of the stream"

    cdef int failed_at(self, int64_t serial, object row, object error, object lineage, list into) except -1:
        """The same, of an input with this number; `lineage` is the failure's, where rows have one."""
        if self.errors == "fail":
            self.end_with(StreamError(self.name, serial, row), error)
        failure = FailedRow(self.name, serial, row, error)
        if self.errors == "skip":
            self.row_counts._skipped(failure)
            return 0
        cdef Batch failures = into[self.failures]
        failures.rows.append(failure)
        if failures.lineages is not None:
            failures.lineages.append(lineage)
        return 0

    cdef int end_with(self, object ending, object error) except -1:
        ending._raised_by = id(self)  # one of a run within an operator is like any exception
        raise ending from error

    cdef int end(self, object error) except -1:
        """Raise what ends the run because of an error of no row in particular."""
        if self.ends_with(error):
            raise error
        return self.end_with(StreamError(self.name), error)

    cdef bint ends_with(self, object error) except -1:
        return isinstance(error, StreamError) and error._raised_by == id(self)

    cdef int emit(self, list outputs, object lineage, list into) except -1:
        """Append outputs of one row, of which some may be for side outputs."""
        cdef Batch batch = into[0]
        cdef object output
        if self.sides is None:
            assert holds(batch.lineages is None or len(batch.lineages) == len(batch.rows))
            batch.rows.extend(outputs)
            if batch.lineages is not None:
                batch.lineages.extend([lineage] * len(outputs))
            return 0
        cdef list ports = [self.sides[output.name] if type(output) is SideOutput else 0 for output in outputs]
        for port, output in zip(ports, outputs):  # none is appended if one names no side output
            if port == nowhere:
                self.row_counts._late(self.name, output.row)
                continue
            batch = into[port]
            batch.rows.append(output.row if port else output)
            if batch.lineages is not None:
                batch.lineages.append(lineage)
        return 0


class SideOutput:
    """An output for the operator's side output `name`, instead of its main one."""

    __slots__ = ("name", "row")

    def __init__(self, str name not None, row):
        self.name = name
        self.row = row

    def __repr__(self):
        return f"SideOutput({self.name!r}, {self.row!r})"


class Raised:
    """Stands for an output that could not be made, for it alone, at a watermark or at the end; or for
    the key of a row, whose function raised."""

    __slots__ = ("error",)

    def __init__(self, error):
        self.error = error


cdef list outputs_of(object result, Ending ending):
    """Return the outputs of a row as a list; their maker has finished, or raised, after this. An iterator may be
    endless, so a cancelled run leaves it, with no outputs: the round is dropped."""
    cdef list outputs
    if type(result) is list:
        return <list>result
    if result is None:
        return []
    refuse_unawaited(result)
    if ending is None or not PyIter_Check(result):
        return list(result)
    outputs = []
    for output in result:
        outputs.append(output)
        if ending.stopped_at.load() < 0:
            return []
    return outputs


cdef int pass_on(Batch batch, Py_ssize_t at, list into) except -1:
    """Hand a watermark to all outputs."""
    cdef Batch port
    assert holds(type(batch.rows[at]) is Watermark)
    for port in into:
        port.rows.append(batch.rows[at])
        if batch.lineages is not None:
            port.lineages.append(batch.lineages[at])
    return 0


@cython.final
cdef class Answering:
    """Calls a function with one value. A coroutine, or an asynchronous generator, is a TypeError."""

    cdef object function

    def __init__(self, function):
        self.function = function

    def __call__(self, value, /):
        answer = self.function(value)
        refuse_unawaited(answer)
        return answer


def check_answer(answer):
    """Refuse a coroutine or an asynchronous generator as an answer. Raises TypeError."""
    refuse_unawaited(answer)
