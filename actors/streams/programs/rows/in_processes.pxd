# Programs whose functions run in worker processes.
from libc.stdint cimport int64_t

from callboard.scheduling.flow.stage cimport RowTotals
from callboard.streams.programs.program cimport Program
from callboard.streams.programs.rows.answers cimport Answers, PendingRound, PendingRow


# The nanoseconds that a round counts for, by those of its functions and of its hand-over.
cdef int64_t time_of(int64_t worked, int64_t handed_over, Py_ssize_t requests) noexcept


cdef class ProcessAnswers(Answers):
    cdef object segment    # encodes rounds, and decodes their outputs: see streams/processes
    cdef tuple members     # the operators of the segment before this one, in the order of the graph
    cdef dict places       # of the operators of the segment, by name

    cdef Program first_of_segment(self)
    cdef list firsts_of(self, PendingRound taken)
    cdef int check(self, PendingRow request, PendingRound taken) except -1
    cdef int note_dropped(self, list dropped, list firsts, list rows, object refused) except -1
    cdef int note_members(self, list counts, RowTotals* here) except -1
    cdef object placed(self, object failure, list firsts, list rows, object refused)


cdef class SegmentMember(Program):
    # An operator of a segment before its last one: rows pass it unchanged, and the last one counts for it.
    cdef int64_t origin    # the serial number of the first row that it saw; -1: none
    cdef int64_t before    # outputs before this run, which was restored
    cdef int64_t given     # outputs since then, with watermarks


cdef class InProcesses(ProcessAnswers):
    # The last operator of a segment: it sends each round to a worker process, for all of them.
    cdef bint has_state    # which is in one process, to which all rounds go
    cdef bint chooses      # where rounds run: here or in processes
    cdef Py_ssize_t most_away  # rounds that processes may have at a time, when they run there

    cdef int note_choice(self) except -1
    cdef bint run_here(self, PendingRound taken) except -1
    cdef int put_outputs(self, PendingRound taken, object refused, object outcome) except -1
    cdef int insert(self, object failed, PendingRound taken, Py_ssize_t place) except -1
