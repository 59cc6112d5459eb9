"""A join whose lanes share the comparisons: three programs in a row.

    JoinOrder    puts the rows of both streams into their order
    JoinLanes    finds partners; each lane does so among the rows that it has stored
    JoinEnd      makes the outputs, and drops the rows that leave their windows

The first writes its work down as commands, which the others carry out in the same order. So the outputs, the errors
and the late rows are those of a Join (Gulisano et al. 2015, section IV). `join_batches_in_lanes.pyx` has the same for
Arrow batches.
"""

import cython

from libc.stdint cimport int64_t, uint32_t

from callboard.core.asserting cimport holds
from callboard.scheduling.flow.stage cimport SubBatch
from callboard.streams.programs.joins.join_index cimport JoinIndex, indexes_state, restored_index
from callboard.streams.programs.joins.join cimport Join, JoinRows
from callboard.streams.programs.merging.time_order cimport InTime
from callboard.streams.programs.merging.merge cimport IdleSources, Merge
from callboard.streams.programs.program cimport Batch, DividedBatch, SubBatchOutputs, Program, Watermark

from callboard.streams.errors import StreamError


@cython.final
@cython.freelist(64)
cdef class JoinCommand:
    """A command for the end of the join: see join_in_lanes.pxd."""


cdef JoinCommand command(JoinCommandKind kind, object subject, object lineage):
    cdef JoinCommand step = JoinCommand.__new__(JoinCommand)
    step.kind, step.subject, step.lineage = kind, subject, lineage
    return step


cdef JoinCommand failed_command(int64_t serial, object row, object error, object lineage):
    cdef JoinCommand step = command(FAILED, row, lineage)
    step.serial, step.error = serial, error
    return step


cdef JoinCommand ended_command(object error):
    cdef JoinCommand step = command(ENDED, None, None)
    step.error = error
    return step


cdef JoinCommand with_found(JoinCommand chunk, object found):
    cdef JoinCommand step = command(CHUNK, chunk.subject, chunk.lineage)
    step.found = found
    return step


# --- the first program, which puts rows into order ---------------------------------------------------

cdef int write_down(IdleSources program, list batches, list into) except -1:
    """Process batches; the program appends commands by note()."""
    cdef Batch out = into[0]
    if program.leaves is not None:
        end = (<Batch?>batches[0]).end
        note(command(BEGIN, None, 0 if end is None else end >> program.drops[0]), into)
    IdleSources.process_many(program, batches, into)
    out.lineages = out.end = None  # these are in the commands
    return 0


cdef int note(JoinCommand step, list into) except -1:
    (<Batch?>into[0]).rows.append(step)
    return 0


@cython.final
cdef class JoinOrder(JoinRows):
    """The order of rows, as commands."""

    cpdef process_many(self, list batches, list into):
        write_down(self, batches, into)

    cdef int take_chunk(self, list rows, object lineage, list into) except -1:
        return note(command(CHUNK, rows, lineage), into)

    cdef int come_to(self, object time, object lineage, list into) except -1:
        return note(command(COME_TO, time, lineage), into)

    cdef int reach(self, Watermark mark, object lineage, list into) except -1:
        return note(command(REACH, mark, lineage), into)

    cdef int take_late(self, tuple entry, object lineage, list into) except -1:
        return note(command(LATE, entry, lineage), into)

    cdef int failed_at(self, int64_t serial, object row, object error, object lineage, list into) except -1:
        return note(failed_command(serial, row, error, lineage), into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        try:
            return InTime.release(self, final, lineage, into)
        except StreamError as error:
            return note(ended_command(error.__cause__), into)

    cdef int finish(self, object lineage, list into) except -1:
        InTime.finish(self, lineage, into)
        return note(command(FINISH, None, lineage), into)


cdef class LanePrograms(Program):
    """The base: finds the partners of chunks. `index` makes a lane's index, from its number and that of all lanes."""

    def __init__(self, str name, *, index, Py_ssize_t lanes, bint releases_gil, **options):
        super().__init__(name, kind="partitioned", **options)
        self.partitions, self.releases_gil = lanes, releases_gil
        self.indexes = [index(lane, lanes) for lane in range(lanes)] + [index(0, 1)]

    cpdef tuple work_of_lanes(self):
        cdef list counts = [(<JoinIndex?>index).compared for index in self.indexes.copy()]
        undivided = counts.pop() if counts else 0
        return (undivided,) if undivided else tuple(counts)

    cpdef close(self):
        self.indexes.clear()  # they may keep alive what keeps the run alive

    cdef object found(self, size_t lane, object chunk):
        """Return the matches of a lane."""
        cdef JoinIndex index = self.indexes[lane]
        found = index.find(chunk)
        if found is None:
            self.indexes[lane] = index = index.successor()
            found = index.find(chunk)
        return found

    cpdef process(self, Batch batch, list into):
        cdef list out = (<Batch?>into[0]).rows
        cdef JoinCommand step
        for step in batch.rows:
            if step.kind == CHUNK:
                step = with_found(step, self.found(self.partitions, step.subject))
            out.append(step)

    cpdef DividedBatch divide(self, Batch batch):
        cdef DividedBatch divided = DividedBatch.__new__(DividedBatch)
        cdef JoinCommand step
        divided.begin(batch, self.partitions)
        for step in batch.rows:
            if step.kind == CHUNK:
                divided.division.add_to_all()
            else:
                divided.division.add_to_none()
        divided.outputs = [SubBatchOutputs() for _ in range(divided.division.count())]
        return divided

    cpdef process_sub_batch(self, DividedBatch divided, uint32_t number):
        cdef list outs = (<SubBatchOutputs?>divided.outputs[number]).outs
        cdef SubBatch* sub_batch = &divided.division.sub_batch(number)
        cdef JoinCommand step
        cdef size_t at
        for at in range(sub_batch.rows.size()):
            step = divided.batch.rows[sub_batch.rows[at]]
            outs.append(self.found(sub_batch.partition, step.subject))

    cpdef gather(self, DividedBatch divided, list into):
        cdef list out = (<Batch?>into[0]).rows
        cdef Py_ssize_t chunk = 0
        cdef JoinCommand step
        cdef SubBatchOutputs outputs
        for step in divided.batch.rows:
            if step.kind == CHUNK:
                found = [outputs.outs[chunk] for outputs in divided.outputs]
                step = with_found(step, (<JoinIndex>self.indexes[0]).together(found))
                chunk += 1
            out.append(step)
        assert holds(all([len((<SubBatchOutputs>outputs).outs) == chunk for outputs in divided.outputs]))


@cython.final
cdef class JoinLanes(LanePrograms):
    """Finds partners of rows: for each row of a chunk a list."""

    cpdef list snapshot(self, object kept):
        return [indexes_state(self.indexes, kept)]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef Py_ssize_t lane
        for lane in range(self.partitions) if divided else [self.partitions]:
            self.indexes[lane] = restored_index(self.indexes[lane], head, kept)


# --- the last program, which carries out the commands ------------------------------------------------

cdef int begin_outputs(Merge program, list into) except -1:
    cdef Batch port
    for port in into:
        port.lineages = None if program.leaves is None else []
    return 0


cdef int carry_out_common(Merge program, JoinCommand step, list into) except -1:
    """Carry out a command of the kinds that are alike for rows and for batches."""
    cdef Batch port
    if step.kind == REACH:
        return Merge.reach(program, step.subject, step.lineage, into)
    if step.kind == FAILED:
        return Program.failed_at(program, step.serial, step.subject, step.error, step.lineage, into)
    if step.kind == ENDED:
        return program.end_with(StreamError(program.name), step.error)
    assert holds(step.kind == BEGIN)
    for port in into:
        port.end = step.lineage >> program.leaves
    return 0


@cython.final
cdef class JoinEnd(Join):
    """Carries out the commands."""

    cpdef process_many(self, list batches, list into):
        cdef JoinCommand step
        begin_outputs(self, into)
        for step in (<Batch?>batches[0]).rows:
            try:
                self.carry_out(step, into)
            except Exception as error:
                self.end(error)

    cdef int carry_out(self, JoinCommand step, list into) except -1:
        cdef JoinCommandKind what = step.kind
        if what == CHUNK:
            return self.put_out(step.subject, step.found, step.lineage, into)
        if what == COME_TO:
            return Join.come_to(self, step.subject, step.lineage, into)
        if what == LATE:
            return InTime.take_late(self, step.subject, step.lineage, into)
        if what == FINISH:
            return self.let_all_go(step.lineage, into)
        return carry_out_common(self, step, into)
