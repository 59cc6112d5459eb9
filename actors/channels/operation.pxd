cimport cython
from cpython.object cimport PyObject, PyTypeObject

from libc.stdint cimport int64_t

from callboard.channels.pipe cimport Line, Pipe
from callboard.channels.wait cimport ChannelWait
from callboard.core.awaitable cimport Awaited, PySendResult, Spare


cdef class Operation:
    # An operation that may have to wait.
    cdef object end          # a ChannelEnd, or a Selection; None when it is over
    cdef object timeout      # in seconds, or None
    cdef double due          # by now(); 0 before the first wait
    cdef ChannelWait waiting
    cdef object hosted       # the steps of the wait in an event loop
    cdef Spare* spare        # of its kind
    cdef Awaited awaited
    cdef bint is_over
    # Fields of some kinds of operations. All kinds are of one size, so that they come from one free list.
    cdef object value        # of a Send
    cdef int64_t offer       # of a Send at capacity 0: the number of the offered value; 0 before
    cdef Pipe offered_in     # of a Send: the channel in which it is offered
    cdef bint is_sent        # of a Send
    cdef bint iterates       # of a Receive or Ready: the end of the channel is the end of an iteration
    cdef Py_ssize_t most     # of a ReceiveMany

    @cython.final
    cdef bint comes_back(self, object value, PyObject** result) except -1
    @cython.final
    cdef void finish(self) noexcept
    cdef Line line(self)
    cdef bint attempt(self, PyObject** outcome) except -1
    cdef bint is_done_after_all(self) except -1
    cdef object block(self, str name, str awaitable)
    cdef double left(self) except -1
    @cython.final
    cdef PySendResult step(self, object value, PyObject** result) except PySendResult.PYGEN_ERROR
    cdef int go_on(self, object error) except -1


cdef inline Operation renewed(type kind, Spare& spare, object end):
    """Return an operation at `end` that has not begun."""
    cdef Operation operation = <Operation>spare.renew(<PyTypeObject*>kind)
    operation.spare = &spare
    operation.end = end
    operation.due = 0
    operation.is_over = operation.iterates = False
    operation.awaited.reset()
    return operation


cdef int make_awaitable(type operation) except -1
