"""The lanes of a join in worker processes: see join_in_lanes.pyx.

Each process has one lane. It gets all rows in their order, stores those of its lane, and compares. It answers with the
numbers of the partners. The program keeps the rows that are in the windows, so it knows the row of each number. From
these it also makes the state of a lane, for a snapshot. Neither a pair nor a state comes back from a process.
"""

import cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.scheduling.flow.stage cimport RowTotals
from callboard.streams.programs.joins.join_in_lanes cimport CHUNK, JoinCommand, with_found
from callboard.streams.programs.joins.join_index cimport RowIndex, indexes_state, number_of, restored_index
from callboard.streams.programs.joins.kernel.rules cimport is_stored_by_lane
from callboard.streams.programs.joins.window_rows cimport RowReader, WindowRow, WindowRule
from callboard.streams.programs.program cimport Batch, Program
from callboard.streams.programs.rounds cimport rows_among
from callboard.streams.programs.rows.answers cimport PendingRound, PendingRow
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers, time_of

# --- in the program -----------------------------------------------------------------------------------


@cython.final
cdef class LaneAnswer:
    """The partners that a lane has found for the rows of a round."""

    cdef bytes ends       # for each row, how many partners there are up to it
    cdef bytes numbers    # of the partners; -1 for an error of the row itself
    cdef dict errors      # place among these -> the exception of the comparison

    def __init__(self, bytes ends, bytes numbers, dict errors):
        self.ends, self.numbers, self.errors = ends, numbers, errors


@cython.final
cdef class KnownRows(RowIndex):
    """The rows in the windows, and the partners that lanes elsewhere have found among them."""

    cdef dict of_number
    cdef list answers     # of the lanes, for a round
    cdef uint64_t first   # the number of its first row

    def __init__(self, WindowRule rule):
        super().__init__(rule, 0, 1)
        self.of_number = {}

    cdef list partners(self, WindowRow kept):
        cdef list found = []
        cdef LaneAnswer answer
        cdef WindowRow other
        cdef const int64_t* ends
        cdef const int64_t* numbers
        cdef Py_ssize_t at, place = kept.number - self.first
        for answer in self.answers:
            ends = <const int64_t*>PyBytes_AS_STRING(answer.ends)
            numbers = <const int64_t*>PyBytes_AS_STRING(answer.numbers)
            for at in range(ends[place - 1] if place else 0, ends[place]):
                other = None if numbers[at] < 0 else self.of_number.get(numbers[at])
                if other is None and numbers[at] >= 0:
                    continue  # a row that could not be sent has pushed it out
                error = answer.errors.get(at) if answer.errors else None
                found.append(other if error is None else (other, error))
        if len(self.answers) > 1 and len(found) > 1:
            found.sort(key=number_of)
        return found

    cdef int stored(self, WindowRow kept) except -1:
        self.of_number[kept.number] = kept
        return 0

    cdef int left(self, WindowRow kept) except -1:
        del self.of_number[kept.number]
        return 0

    cdef tuple state_of_lane(self, size_t lane, size_t lanes):
        """The state of a lane, as ProcessLane.restore() takes it."""
        cdef WindowRow kept
        rows = [
            (kept.side, kept.time, kept.number, kept.place, kept.row) for window in self.windows for kept in window
            if is_stored_by_lane(kept.side, kept.place, lane, lanes)
        ]
        return (lane, lanes, self.came[0], self.came[1]), [rows]


@cython.final
cdef class LaneRound(PendingRound):
    cdef list rows        # of all chunks
    cdef object encoded   # the same for all lanes; None: no lane has got it


@cython.final
@cython.no_gc_clear  # as its base
cdef class LanesInProcesses(ProcessAnswers):
    """The lanes of a join, one in each of `states.count` processes.

    `states` has `encode(rows)`; `send((lane, encoded))`, which returns a future of the answer; `decode(answer)`;
    `note_states(states)` and `restore(states)`, with the state of each lane; and `close()`.
    """

    cdef KnownRows known
    cdef list compared    # pairs, by lane

    def __init__(self, str name, *, WindowRule rule, states, Py_ssize_t most, **options):
        super().__init__(name, segment=states, most=most, **options)
        self.known = KnownRows(rule)
        self.compared = [0] * states.count
        states.note_states(self.states_of_lanes())

    cpdef tuple work_of_lanes(self):
        return tuple(self.compared)

    cpdef close(self):
        ProcessAnswers.close(self)
        self.known = None  # rows may keep the run alive

    cdef list states_of_lanes(self):
        cdef size_t lanes = self.segment.count
        return [self.known.state_of_lane(lane, lanes) for lane in range(lanes)]

    cdef PendingRound taken(self, Batch batch, int64_t serial, list into):
        cdef LaneRound taken = LaneRound.__new__(LaneRound)
        cdef JoinCommand step
        taken.batch, taken.serial, taken.into, taken.rows = batch, serial, into, []
        if batch is not None:
            for step in batch.rows:
                if step.kind == CHUNK:
                    taken.rows += step.subject
            taken.size = self.segment.count if taken.rows else 0
        taken.requests = [None] * taken.size
        return taken

    cdef PendingRow begin_next(self, PendingRound taken):
        cdef LaneRound begun = taken
        cdef PendingRow request = PendingRow.__new__(PendingRow)
        cdef int64_t since = monotonic_ns()
        if begun.encoded is None:
            begun.encoded = self.encoded(begun.rows)
        request.program, request.serial = self, taken.serial
        request.row = taken.begun, begun.encoded
        taken.requests[taken.begun] = request
        taken.begun += 1
        self.begin(request)
        taken.spent += monotonic_ns() - since
        return request

    cdef object encoded(self, list kept):
        """Encode rows. One that cannot be pickled has an error."""
        cdef WindowRow each
        cdef list times = [each.time for each in kept], rows = [each.row for each in kept], refused = []
        sides = bytes([each.side for each in kept])
        try:
            return self.segment.encode((sides, times, rows, refused))
        except Exception:
            for place, each in enumerate(kept):
                try:
                    self.segment.encode((each.time, each.row))
                except Exception as error:
                    error.add_note("A row that a worker process receives must be picklable.")
                    each.error, each.is_alone = error, True
                    times[place] = rows[place] = None
                    refused.append(place)
            if not refused:
                raise
            return self.segment.encode((sides, times, rows, refused))

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef PendingRow request
        cdef JoinCommand step
        cdef RowTotals counts
        cdef list out = (<Batch?>taken.into[0]).rows, answers = []
        cdef int64_t spent = 0, lane, nanoseconds
        for request in taken.requests:
            if request is None or not request.is_done:
                return False
        for lane, request in enumerate(taken.requests):
            error = request.future.exception()
            if error is not None:
                raise error
            ends, numbers, errors, compared, nanoseconds = self.segment.decode(request.future.value)
            assert holds(len(ends) == sizeof(int64_t) * len((<LaneRound>taken).rows))
            answers.append(LaneAnswer(ends, numbers, errors))
            self.compared[lane] += compared
            spent += nanoseconds
        if answers:
            self.known.answers = answers
            self.known.first = (<WindowRow>(<LaneRound>taken).rows[0]).number
        for step in taken.batch.rows:
            if step.kind == CHUNK:
                step = with_found(step, self.known.find(step.subject))
            out.append(step)
        if self.stage != NULL and answers:
            counts.taken = counts.given = rows_among(out)
            self.stage.note_counted(counts, counts, time_of(spent, taken.spent, taken.size))
        return True

    # --- snapshots ----------------------------------------------------------------------------------

    cpdef list snapshot(self, object kept):
        state = indexes_state([self.known], kept)
        self.segment.note_states(self.states_of_lanes())
        return [state]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        restored_index(self.known, head, kept)
        self.segment.restore(self.states_of_lanes())


# --- in a process -------------------------------------------------------------------------------------


@cython.final
cdef class ProcessLane(Program):
    """One lane of a join. `index` makes its index, from the number of the lane and that of all lanes."""

    cdef object index_of
    cdef RowIndex index
    cdef RowReader reader

    def __init__(self, str name, *, index, **options):
        super().__init__(name, **options)
        self.index_of = index
        self.reader = RowReader(None, [[], []], [])

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef WindowRow each
        cdef list rows = []
        lane, lanes, left, right = head
        for side, time, number, place, row in columns[0]:
            each = WindowRow.__new__(WindowRow)
            each.side, each.time, each.number, each.place, each.row = side, time, number, place, row
            rows.append(each)
        self.reader.go_on(([], left + right, left, right))
        self.index = (<RowIndex?>self.index_of(lane, lanes)).go_on(rows)

    def found(self, bytes sides, list times, list rows, refused):
        """Return the partners of rows: as the arguments of a LaneAnswer, and how many pairs were compared."""
        cdef WindowRow kept
        cdef list taken = [], partners
        cdef dict errors = {}
        cdef Py_ssize_t place
        cdef vector[int64_t] ends, numbers
        cdef uint64_t before = self.index.compared
        cdef set missing = set(refused)
        for place in range(len(rows)):
            kept = self.reader.read((times[place], sides[place], 0, rows[place]))
            if place not in missing:
                taken.append(kept)
        matches = iter(self.index.find(taken))
        for place in range(len(rows)):
            partners = [] if place in missing else next(matches)
            for each in partners:
                if type(each) is tuple:
                    errors[numbers.size()] = each[1]
                numbers.push_back(<int64_t>number_of(each))
            ends.push_back(numbers.size())
        return bytes_of(ends), bytes_of(numbers), errors, self.index.compared - before


cdef bytes bytes_of(vector[int64_t]& values):
    return PyBytes_FromStringAndSize(<const char*>values.data(), values.size() * sizeof(int64_t))
