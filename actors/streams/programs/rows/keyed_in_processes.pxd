# Programs of keyed operators whose states are in worker processes.
from callboard.streams.programs.program cimport DividedBatch
from callboard.streams.programs.rows.answers cimport PendingRound
from callboard.streams.programs.rows.in_processes cimport ProcessAnswers
from callboard.streams.programs.rows.stateful cimport Stateful


cdef class KeyedRound(PendingRound):
    # A round that is divided among processes. Each of them has a request.
    cdef DividedBatch divided
    cdef list owned          # for each request, the numbers of its sub-batches
    cdef dict refused        # row -> why it is not sent: the error of its key, or of its pickling
    cdef object error        # why the round could not be divided, or None


cdef class KeyedInProcesses(ProcessAnswers):
    # It divides rounds, and gathers the outputs.
    cdef Stateful keyed      # the operator's program, which has no states here

    cdef int divide_round(self, KeyedRound taken) except -1
    cdef object request_of(self, KeyedRound taken, list numbers)
    cdef bint refuse(self, KeyedRound taken, list groups) except -1
    cdef int gather_round(self, KeyedRound taken) except -1
