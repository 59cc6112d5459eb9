from libc.stdint cimport int64_t

from callboard.channels.end cimport End
from callboard.channels.operation cimport Operation


cdef class Sender(End):
    pass


cdef class Send(Operation):
    cdef object value
    cdef readonly bint sent
    cdef int64_t offer       # at capacity 0: the number of the offered value; 0 before
