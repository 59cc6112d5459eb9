from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.core.memory.buffer cimport Buffer
from callboard.frequency.counting.key_column cimport KeyColumn
from callboard.frequency.counting.keys cimport ByteRun

# How keys are kept: all of them integers; integers, texts, bytes and tuples of these as bytes; as objects.
cdef enum:
    undecided
    as_integers
    as_bytes
    as_objects


cdef class KeyBatch:
    cdef list keys          # null until they are needed, if `column` is an array's
    cdef object array
    cdef Buffer* buffer
    cdef KeyColumn column
    cdef string room
    cdef uint64_t total
    cdef int mode
    cdef int read(self, int mode) except -1


cdef KeyBatch batch_of_list(list keys, weights, int mode)
cdef KeyBatch batch_of_array(object array, int mode)
cdef bint read_integer(object key, int64_t* into) except -1
cdef bint append_key(object key, string& into, ByteRun* run, int depth=*) except -1
cdef bint are_plain(list keys) except -1
cdef object key_of(uint32_t kind, const char* data, Py_ssize_t size)
