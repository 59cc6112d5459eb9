from libc.stdint cimport uint64_t

from callboard._inside.sending.letter cimport Letter


cdef class Ranked:
    # A letter in the heap of a PriorityMailbox.
    cdef int rank             # before all keys, in the order of keys, or after them
    cdef object key
    cdef uint64_t arrival
    cdef Letter letter

    cdef bint comes_before(self, Ranked other) except -1


cdef int push_ranked(list heap, object key, Letter letter, uint64_t arrival) except -1
cdef list in_order_of_arrival(list heap)
