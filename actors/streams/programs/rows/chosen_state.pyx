"""An operator with a state, or one for each key, that runs in the program or in worker processes.

The states move between two rounds, when all earlier rounds have left. They are in one place at a time, and later
rounds wait for them in order, at the stage: no lane waits. The program that runs here has all states in one table. For
the way to the processes, it and the program that sends rounds there understand each other by snapshots.
"""

import cython
import time

from libc.stdint cimport int64_t

from callboard.core.clock cimport monotonic_ns
from callboard.scheduling.flow.stage cimport RowTotals
from callboard.streams.programs.program cimport Batch, DividedBatch, Watermark
from callboard.streams.programs.rounds cimport rows_among
from callboard.streams.programs.rows.answers cimport PendingRound, PendingRow
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers
from callboard.streams.programs.rows.keyed_in_processes cimport KeyedInProcesses, KeyedRound
from callboard.streams.programs.rows.stateful cimport Stateful

from callboard.streams.programs.program import Raised


@cython.final
cdef class ChosenRound(PendingRound):
    pass


@cython.final
@cython.no_gc_clear  # as its base
cdef class ChosenState(ProcessAnswers):
    """An operator with a state whose place is chosen while it runs.

    `make` makes the program that runs here. `away` sends rounds to processes, with the same `segment`, a ChosenStates.
    Up to `most` requests may be there at a time.
    """

    def __init__(self, str name, *, make, ProcessAnswers away, segment, Py_ssize_t most, **options):
        super().__init__(name, segment=segment, most=0, **options)
        self.make, self.away, self.most_away = make, away, most
        self.keyed = away if isinstance(away, KeyedInProcesses) else None
        self.moves = []
        self.use(make())

    cdef int use(self, Stateful local) except -1:
        """Have a program run rounds here."""
        cdef Stateful counting
        self.local = local
        if self.keyed is not None:
            counting = self.keyed.keyed
            local.hot, local.most_hot, local.came = counting.hot, counting.most_hot, []
        return 0

    cpdef bint count_keys(self, int most):
        if not self.away.count_keys(most):
            return False
        self.use(self.local)
        return True

    cpdef tuple hot_keys(self):
        return self.away.hot_keys()

    cpdef close(self):
        ProcessAnswers.close(self)
        if self.local is not None:
            self.local.close()

    # --- rounds -------------------------------------------------------------------------------------

    cdef PendingRound taken(self, Batch batch, int64_t serial, list into):
        cdef ChosenRound taken = ChosenRound.__new__(ChosenRound)
        taken.batch, taken.serial, taken.into = batch, serial, into
        taken.size = self.away.taken(batch, serial, into).size
        return taken

    cdef PendingRow begin_next(self, PendingRound taken):
        """Send a round to the processes; None if it has to run here."""
        cdef ChosenRound chosen = taken
        cdef PendingRound there = self.away.taken(taken.batch, taken.serial, taken.into)
        cdef int64_t begun = time.thread_time_ns()
        self.encode(there)
        if self.segment.refused:
            self.segment.note_refused()
            if not self.segment.stays_away:
                self.most = 0
                return None
        chosen.there = there
        chosen.begun = chosen.size
        if self.keyed is not None:
            self.count_keys_of((<KeyedRound>there).divided)
        for request in there.requests:
            self.begin(request)
        chosen.spent = time.thread_time_ns() - begun
        if not there.requests:
            return None
        self.follow(there.requests[1:])
        return there.requests[0]

    cdef int encode(self, PendingRound there) except -1:
        """Make the requests of a round, and note which rows are refused."""
        cdef PendingRow request
        cdef KeyedRound divided
        cdef DividedBatch batch
        cdef Py_ssize_t number, most = 0, rows
        cdef object hot
        if self.keyed is None:
            encoded = [self.segment.encode(there.batch, self.errors == "fail")]
            self.segment.note_share(1, 1)
        else:
            divided = there
            hot, self.keyed.keyed.hot = self.keyed.keyed.hot, None  # the round may run here
            try:
                self.keyed.divide_round(divided)
            finally:
                self.keyed.keyed.hot = hot
            batch = divided.divided
            encoded = []
            for numbers in divided.owned:
                encoded.append(self.keyed.request_of(divided, numbers))
                rows = sum([batch.division.sub_batch(number).rows.size() for number in numbers])
                most = max(most, rows)
            self.segment.note_share(most, len(there.batch.rows))
        there.requests = []
        there.begun = there.size = len(encoded)
        for row in encoded:
            request = PendingRow.__new__(PendingRow)
            request.program, request.serial, request.row = self, there.serial, row
            there.requests.append(request)
        return 0

    cdef int count_keys_of(self, DividedBatch divided) except -1:
        cdef Stateful counting = self.keyed.keyed
        if counting.hot is None or divided is None:
            return 0
        return counting.note_keys([key for key, row in zip(divided.keys, divided.batch.rows)
                                   if type(row) is not Watermark and type(key) is not Raised])

    cdef int follow(self, list requests) except -1:
        """Wait for the answers of requests that have begun."""
        cdef PendingRow request
        for request in requests:
            self.in_flight += 1
            request.future.add_done_callback(request)
        return 0

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef ChosenRound chosen = taken
        cdef int64_t begun
        cdef Py_ssize_t rows
        if chosen.size == 0:
            return True
        if chosen.there is None:
            if not self.has_moved():
                return False
            if self.local is None:
                self.go_on()  # if the states have just gone
        rows = len(taken.batch.rows)
        if chosen.there is None:
            if self.local is None:  # the earlier rounds have left, so none is in a process
                self.move()
                return False
            self.run_here(chosen)
        else:
            self.is_counted = True
            self.away.row_counts, self.away.stage = self.row_counts, self.stage
            chosen.there.spent = chosen.spent
            begun = time.thread_time_ns()
            if not self.away.put_out(chosen.there):
                return False
            self.segment.note_away(chosen.spent + time.thread_time_ns() - begun, rows)
        self.segment.choose(rows)
        self.note_place()
        return True

    cdef int run_here(self, ChosenRound taken) except -1:
        cdef Batch out
        cdef RowTotals counts
        cdef int64_t begun = monotonic_ns(), elapsed
        self.local.row_counts = self.row_counts
        self.segment.begin_here()
        self.local.process_many([taken.batch], taken.into)
        wants_trial = self.segment.note_here(len(taken.batch.rows))
        elapsed = monotonic_ns() - begun
        counts.taken = rows_among(taken.batch.rows)
        for out in taken.into:
            counts.given += rows_among(out.rows)
        if self.stage != NULL and self.is_counted:  # since then, the stage does not estimate by itself
            self.stage.note_counted(counts, counts, elapsed)
        if wants_trial:
            self.try_hand_over(taken)
        return 0

    cdef int try_hand_over(self, ChosenRound taken) except -1:
        """Measure a hand-over without one."""
        cdef int64_t begun = time.thread_time_ns()
        cdef Batch out
        cdef PendingRound there = self.away.taken(taken.batch, taken.serial, taken.into)
        self.encode(there)
        outputs = [(out.rows, out.lineages) for out in taken.into]
        self.segment.note_trial(time.thread_time_ns() - begun, len(taken.batch.rows), outputs)
        return 0

    # --- moves --------------------------------------------------------------------------------------

    cdef int note_place(self) except -1:
        """Begin to move if the place has changed. Towards the program, the rounds in processes have to leave first."""
        if self.local is None:
            self.most = 0 if self.segment.is_here else self.most_away
        elif not self.segment.is_here:
            self.move()
        return 0

    cdef int move(self) except -1:
        cdef PendingRow request
        futures = self.segment.go(self.give) if self.local is not None else self.segment.fetch()
        for future in futures:
            request = PendingRow.__new__(PendingRow)
            request.program, request.future, request.tries = self, future, 1
            self.moves.append(request)
        return self.follow(self.moves)

    cdef bint has_moved(self) except -1:
        """Whether no move is on its way."""
        cdef PendingRow request
        cdef list moves = self.moves
        for request in moves:
            if not request.is_done:
                return False
        if not moves:
            return True
        self.moves = []
        futures = [(<PendingRow>request).future for request in moves]
        if self.local is None:
            self.segment.come_back(futures, self.take)
        elif self.segment.has_gone(futures):
            self.local.close()
            self.local = None
        self.note_place()
        return not self.moves

    def give(self):
        """Give the segment the states that are here."""
        late = self.local.table.late  # of a snapshot that is being encoded
        try:
            head, *columns = self.local.snapshot(None)
            self.away.restore(head, pieces_of(columns), None, True)
        finally:
            self.local.table.late = late

    def take(self):
        """Take the states of the segment, to run rounds here."""
        cdef Stateful local = self.make()
        head, *columns = self.away.snapshot(None)
        local.restore(head, pieces_of(columns), None, False)
        self.use(local)

    cpdef list snapshot(self, object kept):
        return self.away.snapshot(kept) if self.local is None else self.local.snapshot(kept)

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        self.local.restore(head, columns, kept, False)


cdef list pieces_of(list columns):
    """Return columns as restore() takes them."""
    cdef list pieces = []
    for column in columns:
        pieces += [column.part(begin) for begin in range(0, len(column), column.piece)]
        column.let_go()
    return pieces
