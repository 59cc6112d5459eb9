from libc.stdint cimport int64_t, uint32_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.frequency.counting.keys cimport ByteRun

cdef bint read_integer(object key, int64_t* into) except -1
cdef bint read_integers(list keys, vector[int64_t]& into) except -1
cdef bint read_runs(list keys, vector[ByteRun]& into, string& room) except -1
cdef bint append_key(object key, string& into, ByteRun* run, int depth=*) except -1
cdef bint are_plain(list keys) except -1
cdef object key_of(uint32_t kind, const char* data, Py_ssize_t size)
