"""What the stages of a running graph do with rounds of Python rows, or with lots of native values.

`scheduling/flow/flow.hpp` moves rounds; this module says what a round is: a Batch for each edge. All
functions that stages call hold the interpreter while they run, but for those of native operators.
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool

from callboard.core.clock cimport monotonic_ns
from callboard.core.node cimport acq_rel
from callboard.scheduling.flow.values cimport Output, Value, Values
from callboard.scheduling.flow.flow cimport NativeStage, Operator, Stage, Tally
from callboard.streams.programs.program cimport Batch, Part
from callboard.streams.programs.values cimport lot_of, rows_of
from callboard.streams.native cimport NativeOperator, NativeProgram

from callboard.native import NativeFailure
from callboard.streams.errors import StreamError


cdef class Ending:
    """How a run ends."""

    def __cinit__(self):
        self.stopped_at.store(INT64_MAX)
        self.positions = {}

    cdef int fail(self, int64_t serial, object error) except -1:
        """A round came to its end with an error. The run's is that of the earliest round; of one round,
        that of the latest operator, to which earlier rows came."""
        cdef object key = (serial, -self.position_of(error))
        with cython.critical_section(self):
            if self.stopped_at.load() >= 0 and (self.failed is None or key < self.failed[0]):
                self.failed = (key, error)
                self.stopped_at.store(serial)
        return 0

    cdef object later(self, object first, object second):
        """Of two errors of one round, or None, that of the later operator."""
        if first is None or second is None:
            return first if second is None else second
        return second if self.position_of(second) > self.position_of(first) else first

    cdef object position_of(self, object error):
        return self.positions.get(error.operator, 0)


# --- what a stage does with a round ------------------------------------------------------------------


cdef class Work:
    """A program as a stage's operator."""

    cdef void* process(self, int64_t serial, void** inputs, Tally& tally) noexcept:
        cdef list batches = None
        cdef Batch batch = self.take(0, inputs)
        cdef int i
        if self.inputs > 1:
            batches = [batch]
            for i in range(1, self.inputs):
                batches.append(self.take(i, inputs))
            batch = whole(batches, self.ending)
        if batch is None or self.is_dropped(serial):
            return NULL
        cdef object error = batch.error
        cdef list into = self.fresh(batch)
        try:
            if batches is None:
                tally.taken += len(batch.rows)
                self.program.process(batch, into)
            else:
                for i in range(self.inputs):
                    tally.taken += len((<Batch>batches[i]).rows)
                self.program.process_many(batches, into)
        except BaseException as raised:
            error = self.named(raised)
        if self.stage != NULL:
            self.stage.rest_until(monotonic_ns() + <int64_t>min(self.ns_per_row * len(batch.rows), 1e18))
            if self.is_dropped(serial):  # cancelled meanwhile
                self.stage.rest_until(0)
        return self.finish(serial, into, batch.final, error, tally)

    cdef Operator as_operator(self) noexcept:
        """What the stage calls. It points to this object, so somebody else must keep it."""
        cdef Operator what
        what.self = <void*>self
        what.process = process_work
        if not isinstance(self, Splitter):  # whose one output goes on as it is
            what.pick = pick_work
        what.discard = discard_work
        what.split = split_work
        what.part = part_work
        what.gather = gather_work
        return what

    cdef Batch take(self, int which, void** inputs):
        """Take over what came by an input; None for an empty batch."""
        cdef Values* lot
        cdef Batch batch
        if inputs[which] == NULL:
            return None
        if not self.from_native[which]:
            batch = <Batch>inputs[which]
            Py_DECREF(batch)
            return batch
        lot = <Values*>inputs[which]
        batch = Batch(rows_of(lot), lot.first, lot.final)
        if lot.error != NULL:
            batch.error = <object>lot.error
        let_go(lot)
        return batch

    cdef int throttle(self, Stage* stage) except -1:
        rate = getattr(self.program, "rate", None)
        if rate is not None:
            self.stage = stage
            self.ns_per_row = 1e9 / rate
        return 0

    cdef bint is_dropped(self, int64_t serial) noexcept:
        """The run failed in an earlier round, or was cancelled."""
        return serial > self.ending.stopped_at.load()

    cdef list fresh(self, Batch batch):
        cdef list into = []
        cdef Batch one
        for _ in self.program.ports:
            one = batch.follower()
            one.hide()
            into.append(one)
        return into

    cdef object named(self, object raised):
        """The error of the run for what a program raised. The programs name what user code raised."""
        if isinstance(raised, StreamError):
            return raised
        error = StreamError(self.program.name, None, None)
        error.__cause__ = raised
        return error

    cdef void* finish(self, int64_t serial, list into, bint final, object error, Tally& tally) noexcept:
        """The output of a round: the list of its batches, given away; null if there is nothing in it."""
        cdef Batch out
        cdef bint empty = not final and error is None
        for out in into:
            tally.given += len(out.rows)
            empty = empty and not out.rows
            if error is not None:
                out.error = error
                out.final = False  # what comes after goes on to the failure, but not to the end
        if error is not None and self.edges == 0:
            self.ending.fail(serial, error)
        if empty or self.edges == 0:
            return NULL
        Py_INCREF(into)
        return <void*>into

    cdef void* pick(self, list into, uint32_t edge) noexcept:
        """The batch for an edge. In the order of rounds, one thread at a time."""
        cdef Py_ssize_t port = self.ports_of[edge]
        cdef Batch batch = into[port]
        if edge == 0 or <Py_ssize_t>self.ports_of[edge - 1] != port:  # edges are in the order of ports
            batch.first = self.passed[port]
            self.passed[port] = batch.first + len(batch.rows)
        if edge + 1 == self.edges:
            Py_DECREF(into)
        if not batch.rows and not batch.final and batch.error is None:
            return NULL
        if self.to_native[edge]:
            return native_batch(batch, self.program.name)
        Py_INCREF(batch)
        return <void*>batch


cdef void* native_batch(Batch batch, str name) noexcept:
    """A batch as a lot of native values."""
    cdef Values* lot = NULL
    cdef object error = batch.error
    try:
        lot = lot_of(batch.rows)
    except Exception as raised:
        error = StreamError(name, None, None)
        error.__cause__ = raised
    if lot == NULL:
        if not batch.final and error is None:
            return NULL
        lot = Values.make(0)
    lot.first = batch.first
    lot.final = batch.final and error is None
    if error is not None:
        Py_INCREF(error)
        lot.error = <void*>error
    return <void*>lot


cdef void let_go(Values* lot) noexcept:
    if lot.drop():
        if lot.error != NULL:
            Py_DECREF(<object>lot.error)
        lot.free()


cdef Batch whole(list batches, Ending ending):
    """Make the inputs of one round complete: empty batches in the place of None. What is said of the
    round stands in any of them; None if it is empty everywhere."""
    cdef Batch one = None
    cdef Batch batch
    cdef object error = None
    cdef Py_ssize_t i
    for batch in batches:
        if batch is not None:
            one = batch
            error = ending.later(error, batch.error)
    if one is None:
        return None
    for i in range(len(batches)):
        if batches[i] is None:
            batches[i] = one.follower()
    if error is not one.error:
        one = one.follower()
        one.error = error
    return one


cdef void* process_work(void* work, int64_t serial, void** inputs, Tally& tally) noexcept with gil:
    return (<Work>work).process(serial, inputs, tally)


cdef void* pick_work(void* work, void* output, uint32_t edge) noexcept with gil:
    return (<Work>work).pick(<list>output, edge)


cdef void discard_work(void* work, void* output) noexcept with gil:
    Py_DECREF(<object>output)


# --- partitioned programs: a stage that splits rounds, and one that does the parts ----------------------


cdef class Split:
    """A round on its way through a partitioned stage."""


cdef class Splitter(Work):
    """The first of the two stages. Its one edge leads to the other."""

    cdef void* process(self, int64_t serial, void** inputs, Tally& tally) noexcept:
        cdef Batch batch = self.take(0, inputs)
        cdef Split split
        cdef Part part
        if batch is None or self.is_dropped(serial):
            return NULL
        split = Split.__new__(Split)
        split.batch = batch
        split.error = batch.error
        split.parts = {}
        tally.taken += len(batch.rows)
        tally.given += len(batch.rows)
        try:
            for part in self.program.split(batch):
                split.parts[part.partition] = part
        except BaseException as raised:
            split.error = self.named(raised)
        Py_INCREF(split)
        return <void*>split


cdef class Parts(Work):
    """The second of the two stages."""

    cdef uint32_t begin(self, Split split, uint32_t* partitions) noexcept:
        cdef uint32_t count = 0
        for partition in split.parts:
            partitions[count] = partition
            count += 1
        split.pending.store(count)
        return count

    cdef bint part(self, uint32_t partition, int64_t serial, Split split, Tally& tally) noexcept:
        cdef Part part = split.parts[partition]
        tally.taken += len(part.indices)
        if not self.is_dropped(serial):
            try:
                self.program.process_part(part)
                tally.given += len(part.outs)
            except BaseException as raised:
                with cython.critical_section(split):  # other parts may fail just now
                    split.error = self.named(raised)
        return split.pending.fetch_sub(1, acq_rel) == 1

    cdef void* gathered(self, int64_t serial, Split split) noexcept:
        cdef Tally given
        cdef object error = split.error
        cdef Batch batch = split.batch
        cdef bint complete = error is batch.error  # else a part broke off, and is not whole
        cdef list parts = list(split.parts.values())
        Py_DECREF(split)  # the arguments are borrowed
        if self.is_dropped(serial):
            return NULL
        cdef list into = self.fresh(batch)
        try:
            if complete:
                self.program.gather(batch, parts, into)
        except BaseException as raised:
            error = self.named(raised)
        return self.finish(serial, into, batch.final, error, given)


cdef uint32_t split_work(void* work, void* split, uint32_t* partitions) noexcept with gil:
    return (<Parts>work).begin(<Split>split, partitions)


cdef cbool part_work(
    void* work, uint32_t partition, int64_t serial, void* split, Tally& tally
) noexcept with gil:
    return (<Parts>work).part(partition, serial, <Split>split, tally)


cdef void* gather_work(void* work, int64_t serial, void* split) noexcept with gil:
    return (<Parts>work).gathered(serial, <Split>split)


# --- native programs -----------------------------------------------------------------------------------


cdef class NativeWork(Work):
    """A native program as a stage's operator: see scheduling/flow/native_stage.hpp."""

    cdef int prepare(self, NativeProgram program) except -1:
        cdef NativeStage* native = &self.native
        native.process = <void (*)(void*, const Value*, uint64_t, Output*) noexcept nogil>call_process
        native.finish = <void (*)(void*, Output*) noexcept nogil>call_finish
        native.key_of = <uint64_t (*)(void*, const Value*) noexcept nogil>call_key_of
        for operator in program.objects:
            native.objects.push_back(<void*>operator)
        native.owner = <void*>self
        native.stopped_at = &self.ending.stopped_at
        native.is_sink = True  # until it has an edge
        native.make_error = make_error
        native.retain_error = retain_error
        native.drop_error = drop_error
        native.report = report_error
        return 0


cdef void call_process(NativeOperator one, const Value* values, uint64_t count, Output* out) noexcept nogil:
    one.process(values, count, out)


cdef void call_finish(NativeOperator one, Output* out) noexcept nogil:
    one.finish(out)


cdef uint64_t call_key_of(NativeOperator one, const Value* value) noexcept nogil:
    return one.key_of(value)


cdef void* make_error(void* work, const char* reason) noexcept with gil:
    error = StreamError((<Work>work).program.name, None, None)
    error.__cause__ = NativeFailure(reason.decode("utf-8", "replace"))
    Py_INCREF(error)
    return <void*>error


cdef void retain_error(void* error) noexcept with gil:
    Py_INCREF(<object>error)


cdef void drop_error(void* error) noexcept with gil:
    Py_DECREF(<object>error)


cdef void report_error(void* work, int64_t serial, void* error) noexcept with gil:
    (<Work>work).ending.fail(serial, <object>error)
    Py_DECREF(<object>error)
