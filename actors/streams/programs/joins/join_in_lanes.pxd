# A join whose comparisons are divided among lanes.
from callboard.streams.programs.joins.join cimport Join, JoinRows
from callboard.streams.programs.program cimport Program

# The kind of a command; its arguments stand behind it.
cdef enum JoinCommand:
    BEGIN      # the lineage of a round's end
    LOT        # rows, then what was found of them, a lineage
    COME_TO    # a time, a lineage
    REACH      # a watermark, a lineage
    LATE       # what is late, a lineage
    FAILED     # a serial number, a row, an error, a lineage
    ENDED      # an error: the run's end
    FINISH     # a lineage


cdef class JoinOrder(JoinRows):
    cdef int note(self, tuple command, list into) except -1


cdef class LanePrograms(Program):
    cdef list finders       # one for each lane; and one for where it does not work divided

    cdef object found(self, size_t lane, object lot)
    cdef object together(self, list lanes)
    cdef object compared_by(self, object finder)


cdef class JoinLanes(LanePrograms):
    pass


cdef class JoinEnd(Join):
    cdef int carry_out(self, tuple command, list into) except -1
