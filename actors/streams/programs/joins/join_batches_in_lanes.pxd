# A join of Arrow batches whose comparisons are divided among lanes.
from libc.stdint cimport int64_t

from callboard.streams.programs.joins.join_batches cimport JoinBatches
from callboard.streams.programs.joins.join_in_lanes cimport JoinCommand, LanePrograms
from callboard.streams.programs.joins.lot_finder cimport Known, OrderedRows


cdef class BatchJoinOrder(JoinBatches):
    cdef object progress   # what the output has said
    cdef list held         # of each stream, the columns of rows that may be in a window, and how many came up to there
    cdef int64_t came[2]

    cdef int note(self, JoinCommand step, list into) except -1
    cdef int hold(self, list ready, bint final) except -1
    cdef int look(self, OrderedRows lot) except -1
    cdef int take_over(self, list windows) except -1


cdef class BatchJoinLanes(LanePrograms):
    cdef bint is_divided   # as its state was given back

    cdef int take_over(self, Known known, list windows, list times) except -1


cdef class BatchJoinEnd(JoinBatches):
    cdef dict answers      # of a lot's rows
    cdef list failed       # of each stream, the places of rows that failed and may have been seen by lanes
    cdef list gone         # how many failed before these
    cdef list times        # of each stream, those of its window: while its state is given back

    cdef int carry_out(self, JoinCommand step, list into) except -1
