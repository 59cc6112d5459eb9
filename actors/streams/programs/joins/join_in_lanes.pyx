"""A join whose lanes share the comparisons: three programs in a row.

    JoinOrder    puts the rows of both streams into their order
    JoinLanes    finds partners; divided, each lane does so among the rows that it has stored
    JoinEnd      gives what rows and their partners make, and lets rows go

The first's work is written down as commands, which the others carry out in the same order. So the outputs, the
errors and the late rows are those of a Join. (Gulisano et al. 2015, section IV.) For Arrow batches see
`join_batches_in_lanes.pyx`.
"""

import cython

from libc.stdint cimport int64_t, uint32_t

from callboard.core.asserting cimport holds
from callboard.scheduling.flow.stage cimport Share
from callboard.streams.programs.joins.finder cimport Finder, finders_state, restored_finder
from callboard.streams.programs.joins.join cimport Join, JoinRows
from callboard.streams.programs.joins.kept cimport Kept
from callboard.streams.programs.merging.time_order cimport InTime
from callboard.streams.programs.merging.merge cimport Merge
from callboard.streams.programs.program cimport Batch, DividedBatch, Part, Program, Watermark

from callboard.streams.errors import StreamError


@cython.final
@cython.freelist(64)
cdef class JoinCommand:
    """See join_in_lanes.pxd."""


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


cdef JoinCommand with_found(JoinCommand lot, object found):
    """Return a LOT with what was found. Another one: each command is written once."""
    cdef JoinCommand step = command(LOT, lot.subject, lot.lineage)
    step.found = found
    return step


@cython.final
cdef class JoinOrder(JoinRows):
    """The order of rows, as commands."""

    cpdef process_many(self, list batches, list into):
        cdef Batch out = into[0]
        if self.leaves is not None:
            end = (<Batch?>batches[0]).end
            out.rows.append(command(BEGIN, None, 0 if end is None else end >> self.drops[0]))
        InTime.process_many(self, batches, into)
        out.lineages = out.end = None  # these are in the commands

    cdef int note(self, JoinCommand step, list into) except -1:
        (<Batch?>into[0]).rows.append(step)
        return 0

    cdef int take_lot(self, list rows, object lineage, list into) except -1:
        return self.note(command(LOT, rows, lineage), into)

    cdef int come_to(self, object time, object lineage, list into) except -1:
        return self.note(command(COME_TO, time, lineage), into)

    cdef int reach(self, Watermark mark, object lineage, list into) except -1:
        return self.note(command(REACH, mark, lineage), into)

    cdef int take_late(self, tuple entry, object lineage, list into) except -1:
        return self.note(command(LATE, entry, lineage), into)

    cdef int failed_at(self, int64_t serial, object row, object error, object lineage, list into) except -1:
        return self.note(failed_command(serial, row, error, lineage), into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        try:
            return InTime.release(self, final, lineage, into)
        except StreamError as error:
            return self.note(ended_command(error.__cause__), into)

    cdef int finish(self, object lineage, list into) except -1:
        InTime.finish(self, lineage, into)
        return self.note(command(FINISH, None, lineage), into)


cdef class LanePrograms(Program):
    """The base: finds what lots have. `finder` makes a lane's finder, from its number and that of all lanes."""

    def __init__(self, str name, *, finder, Py_ssize_t lanes, bint releases_gil, **options):
        super().__init__(name, kind="partitioned", **options)
        self.partitions, self.releases_gil = lanes, releases_gil
        self.finders = [finder(lane, lanes) for lane in range(lanes)] + [finder(0, 1)]

    cpdef tuple work_of_lanes(self):
        cdef list counts = [self.compared_by(finder) for finder in self.finders.copy()]
        undivided = counts.pop() if counts else 0
        return (undivided,) if undivided else tuple(counts)

    cpdef close(self):
        self.finders.clear()  # they may keep alive what keeps the run alive

    cdef object found(self, size_t lane, object lot):
        """Return the matches of a lane."""
        raise NotImplementedError

    cdef object together(self, list lanes):
        """Return the matches of all lanes together."""
        raise NotImplementedError

    cdef object compared_by(self, object finder):
        raise NotImplementedError

    cpdef process(self, Batch batch, list into):
        cdef list out = (<Batch?>into[0]).rows
        cdef JoinCommand step
        for step in batch.rows:
            if step.kind == LOT:
                step = with_found(step, self.found(self.partitions, step.subject))
            out.append(step)

    cpdef DividedBatch divide(self, Batch batch):
        cdef DividedBatch divided = DividedBatch.__new__(DividedBatch)
        cdef JoinCommand step
        divided.begin(batch, self.partitions)
        for step in batch.rows:
            if step.kind == LOT:
                divided.division.add_to_all()
            else:
                divided.division.add_to_none()
        divided.parts = [Part() for _ in range(divided.division.count())]
        return divided

    cpdef process_share(self, DividedBatch divided, uint32_t number):
        cdef list outs = (<Part?>divided.parts[number]).outs
        cdef Share* share = &divided.division.share(number)
        cdef JoinCommand step
        cdef size_t at
        for at in range(share.rows.size()):
            step = divided.batch.rows[share.rows[at]]
            outs.append(self.found(share.partition, step.subject))

    cpdef gather(self, DividedBatch divided, list into):
        cdef list out = (<Batch?>into[0]).rows
        cdef Py_ssize_t lot = 0
        cdef JoinCommand step
        cdef Part part
        for step in divided.batch.rows:
            if step.kind == LOT:
                step = with_found(step, self.together([part.outs[lot] for part in divided.parts]))
                lot += 1
            out.append(step)
        assert holds(all([len((<Part>part).outs) == lot for part in divided.parts]))


@cython.final
cdef class JoinLanes(LanePrograms):
    """Finds partners of rows: for each of a lot a list."""

    cpdef list snapshot(self, object kept):
        return [finders_state(self.finders, kept)]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef Py_ssize_t lane
        for lane in range(self.partitions) if divided else [self.partitions]:
            self.finders[lane] = restored_finder(self.finders[lane], head, kept)

    cdef object found(self, size_t lane, object lot):
        cdef Finder finder = self.finders[lane]
        cdef list found = finder.find(lot)
        if found is None:
            self.finders[lane] = finder = finder.successor()
            found = finder.find(lot)
        return found

    cdef object together(self, list lanes):
        return together(lanes)

    cdef object compared_by(self, object finder):
        return (<Finder?>finder).compared


cdef list together(list lanes):
    """For each row, what all lanes have found, in the order of the rows that these are."""
    cdef list found = [], partners, some
    for each in zip(*lanes):
        partners = []
        for some in each:
            partners += some
        if len(partners) > 1:
            partners.sort(key=number_of)
            # Together lanes compare what one would, and nothing twice.
            assert holds(are_distinct(partners))
        found.append(partners)
    return found


cdef bint are_distinct(list partners) except -1:
    """For an assertion: no row is found twice. An error of the row itself may be there for each lane."""
    cdef list rows = [number for number in map(number_of, partners) if number >= 0]
    return len(set(rows)) == len(rows)


def number_of(each):
    """The place in the order of a row that was found; before all: of an error of the row itself."""
    kept = each[0] if type(each) is tuple else each
    return -1 if kept is None else (<Kept?>kept).number


@cython.final
cdef class JoinEnd(Join):
    """Carries out the commands."""

    cpdef process_many(self, list batches, list into):
        cdef Batch port
        cdef JoinCommand step
        for port in into:
            port.lineages = None if self.leaves is None else []
        for step in (<Batch?>batches[0]).rows:
            try:
                self.carry_out(step, into)
            except Exception as error:
                self.end(error)

    cdef int carry_out(self, JoinCommand step, list into) except -1:
        cdef JoinCommandKind what = step.kind
        cdef Batch port
        if what == LOT:
            return self.put_out(step.subject, step.found, step.lineage, into)
        if what == COME_TO:
            return Join.come_to(self, step.subject, step.lineage, into)
        if what == REACH:
            return Merge.reach(self, step.subject, step.lineage, into)
        if what == LATE:
            return InTime.take_late(self, step.subject, step.lineage, into)
        if what == FAILED:
            return Program.failed_at(self, step.serial, step.subject, step.error, step.lineage, into)
        if what == FINISH:
            return self.let_all_go(step.lineage, into)
        if what == ENDED:
            return self.end_with(StreamError(self.name), step.error)
        for port in into:
            port.end = step.lineage >> self.leaves
        return 0
