"""The calling thread's context. The fields are in `context.hpp`."""

from callboard.scheduling.forward cimport Context

cdef extern from "callboard/scheduling/context.hpp":
    pass

cdef Context* current_context() noexcept nogil
cdef int make_contexts_by(Context* (*make)() noexcept nogil) except -1
