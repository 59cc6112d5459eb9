from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from callboard.frequency.counting.keys cimport Blob, ByteKeys, ByteRun, IntegerKeys
from callboard.frequency.counting.object_keys cimport ObjectKeys

cdef extern from "callboard/frequency/counting/index.hpp" namespace "callboard" nogil:
    const uint32_t no_slot "callboard::SlotIndex::none"


cdef extern from "callboard/frequency/counting/counters.hpp" namespace "callboard" nogil:
    cdef cppclass Counters "callboard::Counters"[Keys]:
        uint32_t size()
        uint64_t total()
        uint64_t count_of(uint32_t slot)
        uint64_t error_of(uint32_t slot)
        uint64_t unseen() except +
        vector[uint32_t] top(size_t most) except +
        vector[uint32_t] above(uint64_t bar) except +
        void set_total(uint64_t total)

    cdef cppclass IntegerCounters "callboard::Counters<callboard::IntegerKeys>"(Counters[IntegerKeys]):
        IntegerCounters(uint32_t capacity, uint64_t seed) except +
        uint64_t hash(int64_t key)
        void add(int64_t key, uint64_t weight) except +
        void add_array(const int64_t* keys, size_t count) except +
        uint32_t find(int64_t key)
        int64_t key_of(uint32_t slot)
        uint32_t put(int64_t key, uint64_t hash, uint64_t count, uint64_t error) except +

    cdef cppclass ByteCounters "callboard::Counters<callboard::ByteKeys>"(Counters[ByteKeys]):
        ByteCounters(uint32_t capacity, uint64_t seed) except +
        uint64_t hash(const ByteRun& key)
        void add(const ByteRun& key, uint64_t weight) except +
        void add_array(const ByteRun* keys, size_t count) except +
        uint32_t find(const ByteRun& key)
        Blob* key_of(uint32_t slot)
        uint32_t put(const ByteRun& key, uint64_t hash, uint64_t count, uint64_t error) except +


# With the interpreter, which compares keys.
cdef extern from "callboard/frequency/counting/counters.hpp" namespace "callboard":
    cdef cppclass ObjectCounters "callboard::Counters<callboard::ObjectKeys>"(Counters[ObjectKeys]):
        ObjectCounters(uint32_t capacity, uint64_t seed) except +
        uint32_t find(PyObject* key, uint64_t hash) except *
        uint32_t add_at(uint32_t slot, PyObject* key, uint64_t hash, uint64_t weight) except +
        uint32_t put(PyObject* key, uint64_t hash, uint64_t count, uint64_t error) except +
