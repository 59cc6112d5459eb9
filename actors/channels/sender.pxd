from callboard.channels.end cimport ChannelEnd
from callboard.channels.operation cimport Operation


cdef class Sender(ChannelEnd):
    cdef int refuse_closed(self) except -1
    cdef int end(self, object failure, str failed_by) except -1


cdef class Send(Operation):
    cdef bint settle(self) except -1
    cdef bint has_sent(self) noexcept
