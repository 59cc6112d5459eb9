"""The calling thread's context, for every module of the package.

It is in this module instead of a header, because a variable in a header exists once for each extension
module that includes it.
"""

cdef extern from "callboard/scheduling/thread_contexts.hpp" namespace "callboard" nogil:
    Context* context_of_this_thread() noexcept
    bint make_contexts_with(Context* (*make)() noexcept nogil) noexcept


cdef Context* current_context() noexcept nogil:
    """Return the calling thread's context, made at the first call; it ends with the thread."""
    return context_of_this_thread()


cdef int make_contexts_by(Context* (*make)() noexcept nogil) except -1:
    """Have all contexts made by `make`, which may return a type that derives from Context.

    Raises RuntimeError if there are contexts already.
    """
    if not make_contexts_with(make):
        raise RuntimeError("a thread has a context already, which `make` did not make")
    return 0
