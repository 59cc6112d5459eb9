# Users' functions that several lanes call at a time.
from libc.stdint cimport uint64_t

cdef extern from "callboard/streams/programs/thread_slots.hpp" namespace "callboard":
    cppclass ThreadSlots:
        size_t find(uint64_t thread) const
        size_t take(uint64_t thread)
    size_t most_slots "callboard::ThreadSlots::most"


cdef class SharedFunction:
    cdef readonly object function
    cdef ThreadSlots* slots
    cdef list copies   # of those threads that have a slot
    cdef tuple alone   # for each cell of its closure, whether nobody else refers to it

    cdef object here(self)
    cdef object copy(self)


# Return the function for the calling thread to call, of what shared() returned.
cdef inline object own(object function):
    return (<SharedFunction>function).here() if type(function) is SharedFunction else function
