from libc.stdint cimport int64_t

from callboard.scheduling.forward cimport Spinner


cdef extern from "callboard/_inside/answers/flag.hpp" namespace "callboard" nogil:
    cdef cppclass Flag:
        bint is_set()
        void set()
        bint spin(Spinner& spinner)


cdef class Future:
    cdef Flag flag
    cdef Flag seen             # its users know that it is done: result() in a coroutine waits for nothing
    cdef object value          # the answer; of a failure, the traceback that the exception came with
    cdef object error
    # None, one, or a list of them: callables, and futures that this one's outcome is passed on to.
    cdef object callbacks
    cdef Future deferred_to    # the future whose outcome will be this one's, or None
    cdef int64_t length        # of the longest chain of futures that are deferred to this one
    cdef object target         # the ref that was asked, or None
    cdef object asker          # the ref that asked, or None
    cdef object _timer
    cdef bint is_rest            # an actor that waits for it is idle: it waits for input
    cdef object variables        # the context that an asked actor wants with it, or None

    cdef char blocks_on(self) noexcept
    cdef void note_block(self) noexcept
    cdef bint complete(self, object value, object error)
    cdef bint complete_here(self, object value, object error)
    cdef bint attach(self, object callback)
    cdef void detach(self, object callback) noexcept
    cdef Py_ssize_t remove(self, object callback) except -1
    cdef bint was_withdrawn(self) noexcept
    cdef void abandon(self, object callback) noexcept
    cdef void call_all(self, object callbacks) noexcept
    cdef void call_each(self, object callbacks) noexcept
    cdef void call_back(self, object callback) noexcept
    cdef int wait_until_done(self, object timeout) except -1
    cdef object take(self)
