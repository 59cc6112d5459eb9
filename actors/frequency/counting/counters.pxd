from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t
from libcpp.vector cimport vector

cdef extern from "callboard/core/memory/slot_index.hpp" namespace "callboard" nogil:
    const uint32_t no_slot "callboard::SlotIndex::none"


# With the interpreter, which compares keys.
cdef extern from "callboard/frequency/counting/object_keys.hpp" namespace "callboard":
    cdef cppclass ObjectKeys:
        pass

    uint64_t hash_of_object "callboard::ObjectKeys::hash"(uint64_t seed, Py_hash_t hash)


cdef extern from "callboard/frequency/counting/counters.hpp" namespace "callboard":
    cdef cppclass ObjectCounters "callboard::Counters<callboard::ObjectKeys>":
        ObjectCounters(uint32_t capacity, uint64_t seed) except +
        uint32_t find(PyObject* key, uint64_t hash) except *
        uint32_t add_at(uint32_t slot, PyObject* key, uint64_t hash, uint64_t weight) except +
        uint32_t put(PyObject* key, uint64_t hash, uint64_t count, uint64_t error) except +
        uint32_t size()
        uint64_t total()
        uint64_t unseen()
        uint64_t count_of(uint32_t slot)
        uint64_t error_of(uint32_t slot)
        vector[uint32_t] top(size_t most) except +
        vector[uint32_t] above(uint64_t bar) except +
        void set_total(uint64_t total)
        void set_unseen(uint64_t unseen)
