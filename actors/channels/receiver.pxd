from callboard.channels.end cimport ChannelEnd
from callboard.channels.operation cimport Operation


cdef class Receiver(ChannelEnd):
    cdef list following      # receivers whose channels come after this one's: see replace()

    cdef object take(self, object nothing)
    cdef bint is_at_end(self) except -1
    cdef void leave(self, str reason, bint is_cancelled, object receiver) noexcept


cdef class Receive(Operation):
    cdef bint another_begins(self, Receiver end) except -1


cdef class ReceiveMany(Operation):
    pass
