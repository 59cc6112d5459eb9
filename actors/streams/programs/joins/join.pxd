# Joins of two streams.
from callboard.streams.programs.joins.join_index cimport RowIndex
from callboard.streams.programs.joins.window_rows cimport WindowRow, RowReader, WindowRule
from callboard.streams.programs.merging.time_order cimport InTime


cdef class JoinRows(InTime):
    cdef WindowRule rule
    cdef RowReader reader
    cdef object first       # the time of the first row

    # For subclasses: rows that are ready, in order; then a time that all streams have come to.
    cdef int take_chunk(self, list rows, object lineage, list into) except -1
    cdef int come_to(self, object time, object lineage, list into) except -1


cdef class Join(JoinRows):
    cdef RowIndex index
    cdef object combine        # None: a pair is a tuple
    cdef bint pairs            # outputs are pairs
    cdef bint once             # outputs are the rows of the left stream with a partner
    cdef list gives_unmatched  # for each stream, whether rows without a partner are outputs
    cdef list windows          # for each stream, the rows that may still be part of an output

    cdef int put_out(self, list rows, list found, object lineage, list into) except -1
    cdef list partners(self, WindowRow kept, list found)
    cdef list outputs(self, WindowRow kept, list partners)
    cdef object combined(self, left, right)
    cdef int expire(self, object time, object lineage, list into) except -1
    cdef int keep(self, WindowRow latest, object lineage, list into) except -1
    cdef WindowRow oldest(self)
    cdef WindowRow next_to_go(self)
    cdef int let_all_go(self, object lineage, list into) except -1
    cdef int let_go(self, WindowRow kept, object lineage, list into) except -1
