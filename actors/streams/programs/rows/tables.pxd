# The states of keys.
from libc.stdint cimport int64_t

from callboard.streams.programs.saved cimport Late


cdef class EventTime:
    cdef public object time  # an instant


# See tables.pyx.
cpdef int check_key(str what, object key, bint is_part=*) except -1


cdef class Table:
    # The states of one partition.
    cdef dict states        # key, as as_key() has it -> state, in the order of the keys' first arrival
    cdef EventTime clock    # for states that ask for it: see keyed.pyx
    cdef list heap          # and when to ask them
    cdef dict born          # key -> serial of the row that it came with; None where one table has all keys
    cdef dict homes         # key -> its partition, of all tables; None: keys are where their hashes say
    cdef Py_ssize_t number  # of the partition
    cdef Late late          # who is to know of states before they change, or None

    cdef int put(self, object key, object state, int64_t serial) except -1
    # Others may change a state from now on, and a snapshot may lack it yet. Only where `late` is not None.
    cdef int keep_late(self, object key, object state) except -1
    cdef int drop(self, object key) except -1
    cdef int check_home(self, object key, Py_ssize_t home) except -1
