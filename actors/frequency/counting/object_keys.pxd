from libc.stdint cimport uint64_t

cdef extern from "callboard/frequency/counting/object_keys.hpp" namespace "callboard" nogil:
    cdef cppclass ObjectKeys:
        pass

    uint64_t hash_of_object "callboard::ObjectKeys::hash"(uint64_t seed, Py_hash_t hash)
