# Programs of keyed operators whose states are in worker processes.
from libc.stdint cimport int64_t

from callboard.scheduling.flow.stage cimport RowTotals
from callboard.streams.programs.program cimport DividedBatch
from callboard.streams.programs.rows.answers cimport PendingRound, PendingRow
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers
from callboard.streams.programs.rows.stateful cimport Stateful


cdef class KeyedRound(PendingRound):
    # A round that is divided among processes. Each of them has a request. Behind other operators, the division itself
    # is a request before these.
    cdef DividedBatch divided
    cdef list owned          # for each request, the numbers of its sub-batches
    cdef dict refused        # row -> why it is not sent: the error of its key, or of its pickling
    cdef object error        # why the round could not be divided, or None
    cdef object unsent       # behind other operators: the rows that could not be pickled, or None
    cdef object outcome      # of these operators, when the division has come: see Passed in streams/processes/work.py


cdef class KeyedInProcesses(ProcessAnswers):
    # It divides rounds, and gathers the outputs.
    cdef Stateful keyed      # the operator's program, which has no states here
    cdef bint adds_keys      # the outputs of rows come without their keys
    cdef object undivided    # a deque: behind other operators, the rounds whose division has not come, in order
    cdef int64_t sent_on     # rows that these operators gave in all other rounds, with watermarks
    cdef bint has_failed     # a round could not be divided, so later ones are not sent on

    cdef PendingRow begin_division(self, KeyedRound taken)
    cdef bint send_on(self, KeyedRound taken) except -1
    cdef int begin_parts(self, KeyedRound taken) except -1
    cdef int divide_round(self, KeyedRound taken) except -1
    cdef PendingRow request_for(self, KeyedRound taken, object row)
    cdef object request_of(self, KeyedRound taken, list numbers)
    cdef bint refuse(self, KeyedRound taken, list groups) except -1
    cdef int gather_round(self, KeyedRound taken) except -1
    cdef object note_outcome(self, KeyedRound taken, RowTotals* here, RowTotals* there)
