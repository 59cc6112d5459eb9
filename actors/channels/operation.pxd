from cpython.object cimport PyObject, PyTypeObject

from callboard.channels.pipe cimport Line
from callboard.channels.wait cimport ChannelWait
from callboard.core.awaitable cimport PySendResult


cdef class Operation:
    # An operation that may have to wait.
    cdef object end          # a ChannelEnd, or a Selection
    cdef object timeout      # in seconds, or None
    cdef double due          # by now(); 0 before the first wait
    cdef object outcome
    cdef ChannelWait waiting
    cdef object hosted       # the steps of the wait in an event loop
    cdef bint is_begun       # awaited; once is enough
    cdef bint is_over

    cdef Line line(self)
    cdef bint attempt(self) except -1
    cdef bint is_done_after_all(self) except -1
    cdef object block(self, str name, str awaitable)
    cdef double left(self) except -1
    cdef PySendResult step(self, PyObject** result) except PySendResult.PYGEN_ERROR
    cdef int go_on(self, object error) except -1


cdef int make_awaitable(type operation) except -1
