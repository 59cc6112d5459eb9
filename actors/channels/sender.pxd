from libc.stdint cimport int64_t

from callboard.channels.end cimport ChannelEnd
from callboard.channels.operation cimport Operation
from callboard.channels.pipe cimport Pipe


cdef class Sender(ChannelEnd):
    cdef int refuse_closed(self) except -1
    cdef int end(self, object failure, str failed_by) except -1


cdef class Send(Operation):
    cdef object value
    cdef readonly bint sent
    cdef int64_t offer       # at capacity 0: the number of the offered value; 0 before
    cdef Pipe offered_in     # the channel in which it is offered

    cdef bint settle(self) except -1
