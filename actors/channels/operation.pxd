from callboard.channels.pipe cimport Line


cdef class Operation:
    # An operation that may have to wait.
    cdef object end          # an ChannelEnd, or a Selection
    cdef object timeout
    cdef object outcome
    cdef object error
    cdef bint begun

    cdef Line line(self)
    cdef bint attempt(self) except -1
    cdef bint is_done_after_all(self) except -1
    cdef object block(self, str name, str awaitable)
