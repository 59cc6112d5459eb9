# A join whose comparisons are divided among lanes.
from libc.stdint cimport int64_t

from callboard.streams.programs.joins.join cimport Join, JoinRows
from callboard.streams.programs.program cimport Program

cdef enum JoinCommandKind:
    BEGIN      # a round begins, at whose end the lineage is this
    LOT        # `subject`: rows to be compared; `found` is what was found of them
    COME_TO    # `subject`: a time; of batches, rows that are not compared
    REACH      # `subject`: a watermark
    LATE       # `subject`: what is late
    FAILED     # `subject`: a row; `serial` and `error` are its
    ENDED      # `error` ends the run
    FINISH     # the end of the streams


# A step of a join's work, which the first of its programs writes down.
cdef class JoinCommand:
    cdef JoinCommandKind kind
    cdef object subject
    cdef object found
    cdef int64_t serial
    cdef object error
    cdef object lineage


cdef JoinCommand command(JoinCommandKind kind, object subject, object lineage)
cdef JoinCommand failed_command(int64_t serial, object row, object error, object lineage)
cdef JoinCommand ended_command(object error)


cdef class JoinOrder(JoinRows):
    cdef int note(self, JoinCommand step, list into) except -1


cdef class LanePrograms(Program):
    cdef list finders       # one for each lane; and one for where it does not work divided

    cdef object found(self, size_t lane, object lot)
    cdef object together(self, list lanes)
    cdef object compared_by(self, object finder)


cdef class JoinLanes(LanePrograms):
    pass


cdef class JoinEnd(Join):
    cdef int carry_out(self, JoinCommand step, list into) except -1
