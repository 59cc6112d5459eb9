"""Keyed operators whose states are in worker processes.

The partitions are divided among the processes, in turn. The program divides each round here, where its rows are, as a
keyed stage does (see stateful.pyx). It sends each process its sub-batches, which are handled there in the order of
rounds, and gathers the outputs in the order of rows. answer_part() is the other end, in the process.
"""

import cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.rows.instants cimport as_given, as_key
from callboard.scheduling.flow.stage cimport Division, RowTotals, SubBatch
from callboard.streams.programs.program cimport Batch, DividedBatch, SubBatchOutputs
from callboard.streams.programs.rounds cimport rows_among
from callboard.streams.programs.rows.answers cimport PendingRound, PendingRow
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers, time_of
from callboard.streams.programs.rows.stateful cimport Stateful
from callboard.streams.programs.rows.tables cimport Table

from callboard.streams.programs.program import Raised
from callboard.streams.programs.saved import Columns

# Stands for the key of a row that is not sent.
cdef object NOT_SENT = Raised(ValueError("it was not sent"))


@cython.final
cdef class KeyedRound(PendingRound):
    pass


@cython.final
@cython.no_gc_clear  # as its base
cdef class KeyedInProcesses(ProcessAnswers):
    """A keyed operator with states in `states.count` processes. Partition p is in process p % count.

    `states` has `encode(part)`; `send((process, encoded))`, which returns a future of the answer; `decode(answer)`;
    `snapshots()` and `restore(states)`, with the state of each process; and `close()`.
    """

    def __init__(self, str name, *, Stateful keyed, states, Py_ssize_t most, **options):
        super().__init__(name, segment=states, most=most, **options)
        self.keyed = keyed

    cpdef bint count_keys(self, int most):
        return self.keyed.count_keys(most)

    cpdef tuple hot_keys(self):
        return self.keyed.hot_keys()

    # --- rounds -------------------------------------------------------------------------------------

    cdef PendingRound taken(self, Batch batch, int64_t serial, list into):
        cdef KeyedRound taken = KeyedRound.__new__(KeyedRound)
        taken.batch, taken.serial, taken.into = batch, serial, into
        taken.requests = [None]
        if batch is not None:
            taken.size = 1 if batch.rows or (batch.final and self.keyed.marks_end) else 0  # until it is divided
        return taken

    cdef PendingRow begin_next(self, PendingRound taken):
        cdef KeyedRound divided = taken
        cdef PendingRow request
        cdef int64_t begun
        if divided.divided is None:
            self.divide_round(divided)
            if divided.size == 0:
                return None
        begun = monotonic_ns()
        request = PendingRow.__new__(PendingRow)
        request.program, request.serial = self, taken.serial
        request.row = self.request_of(divided, divided.owned[taken.begun])
        taken.requests[taken.begun] = request
        taken.begun += 1
        self.begin(request)
        taken.spent += monotonic_ns() - begun
        return request

    cdef int divide_round(self, KeyedRound taken) except -1:
        cdef dict owned = {}
        cdef uint32_t number
        taken.refused = {}
        try:
            taken.divided = self.keyed.divide(taken.batch)
            for number in range(taken.divided.division.count()):
                owned.setdefault(taken.divided.division.sub_batch(number).partition % self.segment.count, []).append(
                    number)
        except BaseException as error:  # of the function of keys, for instance SystemExit
            taken.error = error
            owned.clear()
        taken.owned = list(owned.values())
        taken.size = len(owned)
        taken.requests = [None] * taken.size
        return 0

    cdef object request_of(self, KeyedRound taken, list numbers):
        """Return the process of some sub-batches, and these, encoded."""
        cdef DividedBatch divided = taken.divided
        cdef Batch batch = divided.batch
        cdef SubBatch* sub_batch
        cdef uint32_t number, place
        cdef list groups = [], rows, keys
        for number in numbers:
            sub_batch = &divided.division.sub_batch(number)
            rows, keys = [], []
            for place in sub_batch.rows:
                row, key = batch.rows[place], divided.keys[place]
                if type(key) is Raised:
                    taken.refused[place] = key.error
                    row, key = None, NOT_SENT
                rows.append(row)
                keys.append(as_given(key))
            groups.append((sub_batch.partition, places_of(sub_batch), rows, keys))
        part = batch.first, len(batch.rows), batch.final, groups
        try:
            encoded = self.segment.encode(part)
        except Exception as error:
            if not self.refuse(taken, groups):
                raise
            encoded = self.segment.encode(part)
        return sub_batch.partition % self.segment.count, encoded

    cdef bint refuse(self, KeyedRound taken, list groups) except -1:
        """Take out of sub-batches the rows that cannot be pickled. Return whether there are any."""
        cdef bint found = False
        for _, places, rows, keys in groups:
            for at, place in enumerate(memoryview(places).cast("I")):
                try:
                    self.segment.encode((rows[at], keys[at]))
                except Exception as error:
                    error.add_note("A row that a worker process receives must be picklable.")
                    taken.refused[place] = error
                    rows[at], keys[at] = None, NOT_SENT
                    found = True
        return found

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef KeyedRound divided = taken
        cdef PendingRow request
        if divided.error is not None:
            raise divided.error
        if divided.size == 0 and divided.divided is None:
            return True
        for request in divided.requests:
            if request is None or not request.is_done:
                return False
        self.gather_round(divided)
        return True

    cdef int gather_round(self, KeyedRound taken) except -1:
        cdef DividedBatch divided = taken.divided
        cdef PendingRow request
        cdef SubBatchOutputs outputs
        cdef RowTotals counts
        cdef int64_t spent = 0
        cdef Batch out
        cdef Py_ssize_t place
        for request, numbers in zip(taken.requests, taken.owned):
            error = request.future.exception()
            if error is not None:
                raise error
            results, skipped, is_whole, nanoseconds = self.segment.decode(request.future.value)
            spent += nanoseconds
            for failure in skipped:
                self.row_counts._skipped(failure)
            if not is_whole:  # an output could not be pickled, which ends the run
                self.keyed.errors = "fail"
            for number, (outs, ends, errors, marks) in zip(numbers, results):
                outputs = divided.outputs[number]
                outputs.outs, outputs.marks = outs, marks
                outputs.errors = {place: taken.refused.get(place, each) for place, each in errors.items()}
                note_ends(&divided.division.sub_batch(number), ends)
        self.keyed.row_counts = self.row_counts
        try:
            self.keyed.gather(divided, taken.into)
        finally:
            counts.taken = rows_among(taken.batch.rows)
            for out in taken.into:
                counts.given += rows_among(out.rows)
                out.hide()
            if self.stage != NULL:
                self.stage.note_counted(counts, counts, time_of(spent, taken.spent, taken.size))  # rows counted here
        return 0

    # --- snapshots ----------------------------------------------------------------------------------

    cpdef list snapshot(self, object kept):
        cdef list found = self.segment.snapshots(), parts = []
        time = None
        for head, columns in found:
            time = head[0] if time is None else time
            parts += [Columns(column[:3], (0, 2)) for column in columns]
        return [(time,) if parts else found[0][0], *parts]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef list found = [], states = [(head, [([], [], [], [])]) for _ in range(self.segment.count)]
        cdef Py_ssize_t number
        for each in columns:
            found += zip(*each, strict=True)
        if found and len(found[0]) > 2:
            found.sort(key=arrival_of)
        for rank, (key, state, *_) in enumerate(found):
            number = self.keyed.home_of(as_key(key), True).number
            for column, value in zip(states[number % self.segment.count][1][0], (key, state, rank, number)):
                column.append(value)
        self.segment.restore(states)


cdef bytes places_of(SubBatch* sub_batch):
    """Return the places of its rows in their round, as unsigned integers of 32 bits."""
    cdef Py_ssize_t size = sub_batch.rows.size() * sizeof(uint32_t)
    return PyBytes_FromStringAndSize(<const char*>sub_batch.rows.data(), size)


cdef arrival_of(row):
    return (<tuple>row)[2]


cdef int note_ends(SubBatch* sub_batch, object ends) except -1:
    """Note how many outputs there are behind each row. None: one for each."""
    cdef uint64_t end
    sub_batch.ends.reserve(sub_batch.rows.size())
    if ends is None:
        for end in range(sub_batch.rows.size()):
            sub_batch.ends.push_back(end + 1)
    else:
        for end in ends:
            sub_batch.ends.push_back(end)
    return 0


# --- in a process -------------------------------------------------------------------------------------


def answer_part(Stateful program, tuple part):
    """Handle the sub-batches of a process. Returns for each its outputs; how many there are behind each row, or None
    for one each; its errors, by rows; and the outputs of states, by watermarks."""
    cdef list results = []
    first, n, final, groups = part
    for partition, places, rows, keys in groups:
        results.append(answered(program, Batch([None] * n, first, final), partition, places, rows, keys))
    return results


cdef tuple answered(Stateful program, Batch batch, uint32_t partition, bytes given, list rows, list keys):
    cdef DividedBatch divided = DividedBatch.__new__(DividedBatch)
    cdef Division* division = &divided.division
    cdef SubBatch* sub_batch
    cdef SubBatchOutputs outputs
    cdef Py_ssize_t i, at = 0
    cdef Py_ssize_t count = len(given) // sizeof(uint32_t)
    cdef const uint32_t* places = <const uint32_t*>PyBytes_AS_STRING(given)
    cdef uint32_t number = 0
    cdef uint64_t end
    if not count == len(rows) == len(keys):
        raise ValueError(f"expected a place and a key for each of {len(rows)} rows, got {count} and {len(keys)}")
    divided.begin(batch, program.partitions)
    for i in range(len(batch.rows)):
        if at == count or places[at] != i:
            division.add_to_none()
            continue
        batch.rows[i] = rows[at]
        divided.keys[i] = as_key(keys[at])
        division.add_to(partition)
        at += 1
    if count == 0:  # it is concerned by the end alone
        division.concern_all()
        number = partition
    assert holds(at == count and division.sub_batch(number).partition == partition)
    divided.outputs = [SubBatchOutputs() for _ in range(division.count())]
    program.process_sub_batch(divided, number)
    outputs = divided.outputs[number]
    sub_batch = &division.sub_batch(number)
    ends = [end for end in sub_batch.ends]
    is_one_each = ends == list(range(1, count + 1))
    return outputs.outs, None if is_one_each else ends, outputs.errors, outputs.marks


def state_of(Stateful program, bint is_divided):
    """Return the state of a program as restore() takes it back: its head, and columns in pieces. Those of a divided one
    have a last column, the partitions."""
    cdef Table table
    cdef list pieces = [], numbers = [table.number for table in program.tables if table.states]
    head, *columns = program.snapshot(None)
    for at, column in enumerate(columns):
        for begin in range(0, len(column), column.piece):
            piece = column.part(begin)
            if is_divided:
                piece.append([numbers[at]] * len(piece[0]))
            pieces.append(piece)
        column.let_go()
    return head, pieces
