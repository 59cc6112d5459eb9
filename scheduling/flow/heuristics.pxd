from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.stage cimport Figures, Stage

cdef extern from "callboard/scheduling/flow/heuristics.hpp" namespace "callboard" nogil:
    cdef cppclass Chooser:
        pass

# The one of some stages that a heuristic in Python says; called without the interpreter.
ctypedef Stage* (*Ask)(void* asker, const vector[Stage*]& stages) noexcept nogil


cdef class OperatorView:
    cdef object flow            # keeps the stage
    cdef Stage* stage
    cdef Figures figures         # of one of several operators that are a stage
    cdef bint is_waited_at       # the stage's input waits at this operator
    cdef readonly str name


cdef class Heuristic:
    # A new chooser for one flow.
    cdef Chooser* chooser(self, int64_t time_slice_ns, Ask ask, void* asker) except NULL
