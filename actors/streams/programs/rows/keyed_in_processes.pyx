"""Keyed operators whose states are in worker processes.

The partitions are divided among the processes, in turn. The program divides each round here, where its rows are, as a
keyed stage does (see stateful.pyx). It sends each process its sub-batches, which are handled there in the order of
rounds, and gathers the outputs in the order of rows. See keyed_parts.pyx for what travels, and for the other end.

Behind stateless operators, which run in processes, the rows of a round are there already. So any process runs these
operators and divides the round. The program sends each part on as it is, when the earlier rounds have been sent. Then
it knows how many rows came before. It has the places of the rows, and the watermarks.
"""

import cython

from collections import deque

from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.clock cimport monotonic_ns
from callboard.rows.instants cimport as_given, as_key
from callboard.scheduling.flow.stage cimport RowTotals, SubBatch
from callboard.streams.programs.program cimport Batch, DividedBatch, Program, SubBatchOutputs
from callboard.streams.programs.rounds cimport rows_among
from callboard.streams.programs.rows.answers cimport PendingRound, PendingRow
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers, SegmentMember, time_of
from callboard.streams.programs.rows.keyed_parts cimport ALL_OR_NONE, NOT_SENT, groups_of, owned_of, packed_groups
from callboard.streams.programs.rows.stateful cimport Stateful, arrival_of

from callboard.streams.errors import FailedRow
from callboard.streams.programs.program import Raised, SideOutput
from callboard.streams.programs.rows.keyed_parts import FIRST, unpacked
from callboard.streams.programs.saved import Columns


@cython.final
cdef class KeyedRound(PendingRound):
    pass


@cython.final
@cython.no_gc_clear  # as its base
cdef class KeyedInProcesses(ProcessAnswers):
    """A keyed operator with states in `states.count` processes. Partition p is in process p % count.

    `states` has `encode(part)`; `send((process, encoded))`, which returns a future of the answer; `decode(answer)`;
    `snapshots()` and `restore(states)`, with the state of each process; and `close()`. Behind the `members` also
    `encode_round(batch, fails)`, which returns what is sent as that of process -1, and the rows that it refused;
    `division_of(answer)`; `is_lost(error)`; and `wants_keys`, which is set if keys are wanted here. Then the key of
    `keyed` is given_key().
    """

    def __init__(self, str name, *, Stateful keyed, states, tuple members, Py_ssize_t most, **options):
        super().__init__(name, segment=states, members=members, most=most, tries_again=bool(members), **options)
        self.keyed, self.undivided = keyed, deque()
        self.adds_keys = not members and keyed.puts_keys()

    cpdef bint count_keys(self, int most):
        if self.members:
            self.segment.wants_keys = True
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
        if self.members:
            return self.begin_division(divided)
        if divided.divided is None:
            self.divide_round(divided)
            if divided.size == 0:
                return None
        begun = monotonic_ns()
        request = self.request_for(divided, self.request_of(divided, divided.owned[taken.begun]))
        taken.requests[taken.begun] = request
        taken.begun += 1
        self.begin(request)
        taken.spent += monotonic_ns() - begun
        return request

    cdef PendingRow request_for(self, KeyedRound taken, object row):
        cdef PendingRow request = PendingRow.__new__(PendingRow)
        request.program, request.serial, request.row = self, taken.serial, row
        return request

    cdef int divide_round(self, KeyedRound taken) except -1:
        taken.refused, taken.owned = {}, []
        try:
            taken.divided = self.keyed.divide(taken.batch)
            taken.owned = owned_of(taken.divided, self.segment.count)
        except BaseException as error:  # of the function of keys, for instance SystemExit
            taken.error = error
        taken.size = len(taken.owned)
        taken.requests = [None] * taken.size
        return 0

    cdef object request_of(self, KeyedRound taken, list numbers):
        """Return the process of some sub-batches, and these, encoded."""
        cdef DividedBatch divided = taken.divided
        cdef Batch batch = divided.batch
        cdef list groups = groups_of(divided, numbers, taken.refused)
        try:
            encoded = self.segment.encode((batch.first, len(batch.rows), batch.final, packed_groups(groups)))
        except Exception as error:
            if not self.refuse(taken, groups):
                raise
            encoded = self.segment.encode((batch.first, len(batch.rows), batch.final, groups))
        return groups[0][0] % self.segment.count, encoded

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

    # --- behind other operators ---------------------------------------------------------------------

    cdef PendingRow begin_division(self, KeyedRound taken):
        cdef int64_t begun = monotonic_ns()
        encoded, taken.unsent = self.segment.encode_round(taken.batch, self.first_of_segment().errors == "fail")
        cdef PendingRow request = self.request_for(taken, (-1, encoded))
        taken.requests[0] = request
        taken.begun = 1
        self.undivided.append(taken)
        self.begin(request)
        taken.spent = monotonic_ns() - begun
        return request

    cdef bint settle(self, PendingRow request) except -1:
        if request.row[0] >= 0 or not (request.pauses or self.segment.is_lost(request.future.error)):
            request.is_done = True
            return True
        return ProcessAnswers.settle(self, request)

    cdef int go_on(self) except -1:
        ProcessAnswers.go_on(self)
        while self.undivided and self.send_on(self.undivided[0]):
            self.undivided.popleft()
        return 0

    cdef bint send_on(self, KeyedRound taken) except -1:
        """Send the parts of the earliest round that is not divided. False: the division has not come."""
        cdef PendingRow request = taken.requests[0]
        cdef int64_t begun
        if not request.is_done:
            return False
        if not self.has_failed:
            begun = monotonic_ns()
            try:
                self.check(request, taken)
                self.begin_parts(taken)
            except BaseException as error:
                taken.error, self.has_failed = error, True
            taken.spent += monotonic_ns() - begun
        return True

    cdef int begin_parts(self, KeyedRound taken) except -1:
        cdef PendingRow request = taken.requests[0]
        cdef int64_t first = (<SegmentMember>self.members[len(self.members) - 1]).before + self.sent_on
        cdef list rows, keys, parts, requests = []
        taken.outcome, known, lineages, final, keys, division, parts = self.segment.division_of(request.future.value)
        if keys is None:
            size, known = known
            rows = [None] * size
            for place, row in known.items():
                rows[place] = row
        else:
            rows = known
        cdef Batch batch = Batch(rows, first, final, lineages, taken.batch.end)
        if keys is None:
            partitions, taken.refused = division
            taken.divided = divided_again(self.keyed, batch, partitions)
            taken.owned = owned_of(taken.divided, self.segment.count)
            head = FIRST.pack(first)
            if len(parts) != len(taken.owned):
                raise ValueError(f"expected parts for {len(taken.owned)} processes, got {len(parts)}")
            for numbers, part in zip(taken.owned, parts):
                partition = taken.divided.division.sub_batch(numbers[0]).partition
                requests.append(self.request_for(taken, (partition % self.segment.count, [head, part])))
        else:
            taken.divided = self.keyed.divide(Batch(keys, first, final))
            taken.divided.batch = batch
            taken.owned = owned_of(taken.divided, self.segment.count)
            taken.refused = {}
            for numbers in taken.owned:
                requests.append(self.request_for(taken, self.request_of(taken, numbers)))
        self.sent_on += len(rows)
        taken.requests = requests
        taken.size = taken.begun = len(requests)
        for request in requests:
            self.begin(request)
            self.in_flight += 1
            request.future.add_done_callback(request)
        return 0

    cdef object note_outcome(self, KeyedRound taken, RowTotals* here, RowTotals* there):
        """Count what the other operators did, and return the error that ended the round there."""
        cdef Program first = self.first_of_segment()
        cdef list rows = taken.batch.rows, firsts = self.firsts_of(taken)
        failure, counts, dropped = taken.outcome
        self.note_dropped(dropped, firsts, rows, taken.unsent)
        self.note_members(counts, here)
        there.taken = counts[len(self.members) - 1][1]
        if taken.unsent is not None:
            for place, error in taken.unsent[0]:
                if first.errors == "fail":
                    failure = failure or (first.name, place, rows[place], "", error)
                else:
                    self.row_counts._skipped(FailedRow(first.name, firsts[0] + place, rows[place], error))
        return None if failure is None else self.placed(failure, firsts, rows, taken.unsent)

    # --- gathering ----------------------------------------------------------------------------------

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef KeyedRound divided = taken
        cdef PendingRow request
        if divided.error is not None:
            raise divided.error
        if divided.divided is None:
            return divided.size == 0  # else it is not divided yet
        for request in divided.requests:
            if request is None or not request.is_done:
                return False
        self.gather_round(divided)
        return True

    cdef int gather_round(self, KeyedRound taken) except -1:
        cdef DividedBatch divided = taken.divided
        cdef PendingRow request
        cdef SubBatchOutputs outputs
        cdef RowTotals here, there
        cdef int64_t spent = 0
        cdef Batch out
        cdef Py_ssize_t place
        failure = None
        here.taken = here.given = there.taken = rows_among(taken.batch.rows)
        if self.members:
            failure = self.note_outcome(taken, &here, &there)
        for request, numbers in zip(taken.requests, taken.owned):
            self.check(request, taken)
            results, skipped, failed, is_whole, nanoseconds = self.segment.decode(request.future.value)
            spent += nanoseconds
            for each in skipped:
                self.row_counts._skipped(each)
            for place, row in failed.items():
                divided.batch.rows[place] = row
            if not is_whole:  # an output could not be pickled, which ends the run
                self.keyed.errors = "fail"
            for number, (outs, ends, errors, marks) in zip(numbers, results):
                outputs = divided.outputs[number]
                outputs.outs, outputs.marks = unpacked(outs), marks
                outputs.errors = {place: taken.refused.get(place, each) for place, each in errors.items()}
                note_ends(&divided.division.sub_batch(number), ends)
                if self.adds_keys:
                    add_keys(divided, number)
        self.keyed.row_counts = self.row_counts
        try:
            self.keyed.gather(divided, taken.into)
        finally:
            here.given = 0
            for out in taken.into:
                here.given += rows_among(out.rows)
                out.hide()
            there.given = here.given  # which are counted when they leave
            if self.stage != NULL:
                self.stage.note_counted(here, there, time_of(spent, taken.spent, taken.size))
        if failure is not None:
            raise failure
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


def given_key(key):
    """Return a key that was computed elsewhere. Raises what the function of keys raised there."""
    if type(key) is Raised:
        raise key.error
    return key


cdef DividedBatch divided_again(Stateful program, Batch batch, object given):
    """Divide a batch as a process has, by the partitions of its rows."""
    cdef DividedBatch divided = DividedBatch.__new__(DividedBatch)
    cdef const uint32_t[::1] partitions = memoryview(given).cast("I")
    cdef uint32_t partition
    if partitions.shape[0] != len(batch.rows):
        raise ValueError(f"expected partitions of {len(batch.rows)} rows, got {partitions.shape[0]}")
    divided.begin(batch, program.partitions)
    if batch.final and program.marks_end:
        divided.division.concern_all()
    for partition in partitions:
        if partition == ALL_OR_NONE:
            divided.add_watermark(program.marks_time)
        elif partition < program.partitions:
            divided.division.add_to(partition)
        else:
            raise ValueError(f"expected a partition below {program.partitions}, got {partition}")
    divided.outputs = [SubBatchOutputs() for _ in range(divided.division.count())]
    return divided


cdef int add_keys(DividedBatch divided, uint32_t number) except -1:
    """Put the keys of a sub-batch's rows in front of their outputs, as the operator itself would."""
    cdef SubBatch* sub_batch = &divided.division.sub_batch(number)
    cdef list outs = (<SubBatchOutputs>divided.outputs[number]).outs
    cdef size_t at
    cdef Py_ssize_t end, place = 0
    for at in range(min(sub_batch.rows.size(), sub_batch.ends.size())):
        end = min(<Py_ssize_t>sub_batch.ends[at], len(outs))
        key = as_given(divided.keys[sub_batch.rows[at]])
        while place < end:
            output = outs[place]
            if type(output) is not SideOutput and type(output) is not Raised:
                outs[place] = (key, output)
            place += 1
    return 0


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
