"""The calling thread's context, for every module of the package."""

from callboard.scheduling.cell cimport Context

cdef extern from "callboard/scheduling/thread_context.hpp" namespace "callboard" nogil:
    Context* context_of_this_thread()


cdef Context* current_context() noexcept nogil:
    """Answer the calling thread's context, made at the first call; it ends with the thread."""
    return context_of_this_thread()
