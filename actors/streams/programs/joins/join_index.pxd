# Join indexes: they find the partners of rows.
from libc.stdint cimport uint64_t

from callboard.streams.programs.joins.window_rows cimport WindowRow, SavedRows, WindowRule

# Rows that are taken at once: the partners of all of them are in memory together.
cdef enum:
    ROWS_AT_ONCE = 64

# Hashes of buckets begin with it, so that nobody can choose values that share a bucket.
cdef uint64_t SEED


cdef class JoinIndex:
    cdef uint64_t compared  # pairs, so far

    # The partners of a chunk of rows, which are the next ones. None: these cannot be compared this way, and nothing
    # was done.
    cdef object find(self, object chunk)
    # The index that goes on then.
    cdef JoinIndex successor(self)
    # The partners that all lanes have found together.
    cdef object together(self, list lanes)


cdef class RowIndex(JoinIndex):
    # It finds a list for each row: its partners among the rows that this lane stored before it, or, in the place of
    # one, (the row or None, the exception of a comparison).
    cdef WindowRule rule
    cdef size_t lane, lanes
    cdef list windows       # for each stream, the rows that this lane has stored, in order
    cdef uint64_t came[2]   # how many rows of each stream

    # The index that goes on with windows that have these rows, in order.
    cdef RowIndex go_on(self, list rows)

    cdef int expire(self, object time) except -1
    cdef bint is_mine(self, WindowRow kept)
    cdef int keep(self, WindowRow kept) except -1
    cdef int push_out(self, WindowRow kept) except -1

    # For subclasses: a row's partners among the rows that this lane has stored, as find() has them. A row enters its
    # window, and the oldest leaves it.
    cdef list partners(self, WindowRow kept)
    cdef int stored(self, WindowRow kept) except -1
    cdef int left(self, WindowRow kept) except -1


# The place of a found row in the order; -1 for an error of the row itself.
cdef number_of(each)

# The state of a join's indexes, for a snapshot; and an index that goes on with it.
cdef tuple indexes_state(list indexes, SavedRows kept)
cdef RowIndex restored_index(RowIndex index, tuple state, SavedRows kept)
