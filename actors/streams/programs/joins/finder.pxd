# Finders of a row's partners.
from libc.stdint cimport uint64_t

from callboard.streams.programs.joins.kept cimport Kept, KeptRows, WindowRule


cdef class Finder:
    cdef WindowRule rule
    cdef size_t lane, lanes
    cdef uint64_t compared  # pairs, so far
    cdef list windows       # for each stream, the rows that this lane has stored, in order
    cdef uint64_t came[2]   # of each stream, how many rows

    # For each of the next rows, in order, its partners among those that this lane stored before it; and in the place
    # of one, (that or None, what comparing raised). None: these cannot be compared so; nothing was done.
    cdef list find(self, list rows)
    # The finder that goes on with these windows then.
    cdef Finder successor(self)

    # Whether a snapshot can have the windows; and the finder that goes on with such rows, in order.
    cdef bint can_be_saved(self)
    cdef Finder go_on(self, list rows)

    cdef int expire(self, object time) except -1
    cdef bint is_mine(self, Kept kept)
    cdef int keep(self, Kept kept) except -1
    cdef int push_out(self, Kept kept) except -1

    # For finders: those of a row's partners that this lane has stored, as find() says. A row comes into its window,
    # and the oldest leaves it.
    cdef list partners(self, Kept kept)
    cdef int stored(self, Kept kept) except -1
    cdef int left(self, Kept kept) except -1


cdef class PairFinder(Finder):
    cdef list tables        # for each stream, rows by their keys; None without keys
    cdef list comparisons
    cdef object test
    cdef bint once          # one partner of a row of the left stream is as good as all

    cdef bint compare(self, Kept kept, Kept other) except -1


# The state of a join's finders, for a snapshot; and a finder that goes on with it.
cdef tuple finders_state(list finders, KeptRows kept, str name)
cdef Finder restored_finder(Finder finder, tuple state, KeptRows kept)
