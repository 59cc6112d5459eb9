from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.frequency.key_batch cimport KeyBatch
from callboard.frequency.store cimport Store, SummaryState
from callboard.frequency.summary_locks cimport StreamSlots, SummaryGuard


cdef class SpaceSaving:
    cdef Store store
    cdef int mode               # the store's: a hint for threads without a slot
    cdef StreamSlots* slots     # a thread that counts keys that are not objects takes one
    cdef bint one_at_a_time     # so queries take it, too
    cdef list postponed         # batches that the thread in the guard counts when it leaves
    cdef SummaryGuard guard     # held to ask, to change the store, or to count objects
    cdef readonly double epsilon
    cdef readonly uint32_t capacity
    cdef unsigned streams
    cdef str design

    cdef int _enter(self, bint alone=*) except -1
    cdef int _leave(self, bint alone=*) except -1
    cdef KeyBatch _next_postponed(self)
    cdef SummaryState _ask(self, size_t most, double support)
    cdef SummaryState _state(self)
    cdef int _be(self, int mode) except -1
    cdef int _load(self, SummaryState state) except -1
    cdef bint _takes_all_of(self, list keys) except -1
    cdef int _admit(self, uint64_t elements) except -1
    cdef unsigned _take_stream(self) noexcept
    cdef int _count_batch(self, KeyBatch batch) except -1
    cdef bint _count(self, KeyBatch batch) except -1
    cdef int _count_objects(self, KeyBatch batch) except -1
    cdef int _update_integers(self, array) except -1
