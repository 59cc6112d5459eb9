from libc.stdint cimport int64_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.frequency.counting.keys cimport ByteRun

# How keys are kept: all of them integers; integers, texts, bytes and tuples of these as bytes; as objects.
cdef enum:
    undecided
    as_integers
    as_bytes
    as_objects


cdef int check_key(object key) except -1


cdef class Lot:
    cdef list keys
    cdef vector[int64_t] integers
    cdef vector[ByteRun] runs
    cdef string room
    cdef vector[uint64_t] weights
    cdef uint64_t total
    cdef int mode
    cdef const uint64_t* weights_or_null(self)
    cdef int read(self, int mode) except -1
