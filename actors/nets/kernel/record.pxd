"""Records in a net: a shape, which many records share, and the values in its order."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t


cdef class Shape:
    cdef readonly tuple labels  # in the order of the values
    cdef readonly object variant  # the same as a frozenset
    cdef readonly dict slots  # a label's place in that order


cdef class Shapes:
    cdef dict known

    cdef Shape of(self, object variant)


cdef class Lineage:
    cdef Lineage parent
    cdef Py_ssize_t live  # the records in it, and the lineages with it as parent
    cdef object region  # the entity that is told of its end: that of an ordered net; None at a root
    cdef Lineage following  # the next one of the region
    cdef list buffered  # records that wait at the region's end for those of earlier lineages
    cdef list trace  # of a root: its steps, if they are noted
    cdef object asked  # of a root: the ask that it answers


cdef class MovingRecord:
    cdef Shape shape
    cdef tuple values
    cdef Lineage lineage
    cdef object at  # the entity that it comes to next, while it waits
    cdef MovingRecord below  # the next one on the executor's stack
    cdef object rest  # the outputs that its entity has yet to give
    cdef int64_t spent  # nanoseconds that the box has taken so far
    cdef list collected  # those that it has given, if they are passed on together


cdef MovingRecord new_record(Shape shape, tuple values, Lineage lineage)
cdef Lineage lineage_in(object region, MovingRecord record)


cdef class Assembly:
    cdef tuple keys
    cdef readonly Shape shape
    cdef Py_ssize_t* sources  # for each value: the number of a new one, or ~ the slot of an inherited one
    cdef bint* is_tag

    cdef bint build(self, tuple values, PyObject** fresh, tuple inherited) noexcept


cdef class Assembler:
    cdef Shapes shapes
    cdef dict names
    cdef object variants
    cdef object consumed
    cdef Shape shape
    cdef str place
    cdef Assembly last
    cdef dict known

    cdef Assembly assembly(self, tuple keys)
    cdef Assembly new_assembly(self, tuple keys)
    cdef tuple checked(self, Assembly assembly, list values)
    cdef int fill(self, MovingRecord into, object row, tuple inherited) except -1
