# Joins of two streams.
from callboard.streams.programs.joins.finder cimport Finder
from callboard.streams.programs.joins.kept cimport Kept, RowReader, WindowRule
from callboard.streams.programs.merging.time_order cimport InTime


cdef class JoinRows(InTime):
    cdef WindowRule rule
    cdef RowReader reader
    cdef object first       # the time of the first row

    # For programs: rows that are ready, in order; and a time that all streams have come to, behind these.
    cdef int take_lot(self, list rows, object lineage, list into) except -1
    cdef int come_to(self, object time, object lineage, list into) except -1


cdef class Join(JoinRows):
    cdef Finder finder
    cdef object combine     # None: a pair is a tuple
    cdef bint pairs         # it gives pairs
    cdef bint once          # it gives rows of the left stream that have a partner
    cdef list lonely        # for each stream, whether it gives rows without one
    cdef list windows       # for each stream, the rows that may be part of an output yet

    cdef int put_out(self, list rows, list found, object lineage, list into) except -1
    cdef list partners(self, Kept kept, list found)
    cdef list outputs(self, Kept kept, list partners)
    cdef object combined(self, left, right)
    cdef int expire(self, object time, object lineage, list into) except -1
    cdef int keep(self, Kept latest, object lineage, list into) except -1
    cdef Kept oldest(self)
    cdef Kept next_to_go(self)
    cdef int let_all_go(self, object lineage, list into) except -1
    cdef int let_go(self, Kept kept, object lineage, list into) except -1
