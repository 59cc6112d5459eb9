# A join whose comparisons are divided among lanes.
from callboard.streams.programs.joins.join cimport Join, JoinRows
from callboard.streams.programs.program cimport Program


cdef class JoinOrder(JoinRows):
    cdef int note(self, tuple step, list into) except -1


cdef class JoinLanes(Program):
    cdef list finders       # one for each lane; and one for where it does not work divided

    cdef list found(self, size_t lane, list rows)


cdef class JoinEnd(Join):
    cdef int do(self, tuple step, list into) except -1
