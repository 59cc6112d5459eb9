from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.frequency.counting.counters cimport ObjectCounters
from callboard.frequency.counting.key_column cimport KeyColumn
from callboard.frequency.designs.summary cimport ByteSummary, Design, IntegerSummary
from callboard.frequency.key_batch cimport KeyBatch


cdef class SummaryState:
    cdef list rows
    cdef uint64_t total
    cdef uint64_t unseen


cdef SummaryState merged(SummaryState mine, SummaryState theirs, uint32_t most)


cdef class Store:
    cdef Design design
    cdef uint32_t capacity
    cdef unsigned streams
    cdef unsigned threads
    cdef int mode
    cdef IntegerSummary* integers
    cdef ByteSummary* runs
    cdef ObjectCounters* objects
    cdef list kept

    cdef int add(self, unsigned stream, KeyBatch batch) except -1
    cdef int add_column(self, unsigned stream, const KeyColumn* column) except -1 nogil
    cdef int add_array(self, unsigned stream, const int64_t* keys, size_t count) except -1
    cdef int add_object(self, object key, uint64_t weight, list late) except -1
    cdef SummaryState ask(self, size_t most, double support)
    cdef SummaryState whole(self)
    cdef object estimate(self, object given)
    cdef uint32_t size(self) except? 0
    cdef uint64_t total(self)
    cdef Store widened(self, int mode)
    cdef Store loaded(self, int mode, SummaryState state)
