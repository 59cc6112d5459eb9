from libc.stdint cimport uint64_t
from libcpp.string cimport string

from callboard.core.memory.buffer cimport Buffer
from callboard.frequency.counting.key_column cimport KeyColumn

# How keys are kept: all of them integers; integers, texts, bytes and tuples of these as bytes; as objects.
cdef enum:
    undecided
    as_integers
    as_bytes
    as_objects


cdef class KeyBatch:
    cdef list keys          # null until they are wanted, if `column` is an array's
    cdef object array
    cdef Buffer* buffer
    cdef KeyColumn column
    cdef string room
    cdef uint64_t total
    cdef int mode
    cdef int read(self, int mode) except -1


cdef KeyBatch batch_of_list(list keys, weights, int mode)
cdef KeyBatch batch_of_array(object array, int mode)
