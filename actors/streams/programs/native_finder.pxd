# Who finds partners of a row by a C function.
from libcpp.deque cimport deque
from libcpp.vector cimport vector

from callboard.scheduling.flow.values cimport Value
from callboard.streams.programs.finder cimport Finder


cdef class NativePredicate:
    # Subclass this and override `matches`. Without the interpreter, in several threads at once.

    # Whether a row of the left stream and one of the right are partners. What values point to is borrowed.
    cdef bint matches(self, const Value* left, const Value* right) noexcept nogil


cdef class NativeFinder(Finder):
    cdef NativePredicate predicate
    cdef bint once
    cdef Value latest               # of the row that is compared
    cdef deque[Value] lefts, rights  # those of the rows in windows, whose buffers are kept
    cdef vector[size_t] hits        # their places

    cdef deque[Value]* values(self, Py_ssize_t side) noexcept nogil
    cdef int read(self, object row) except -1
    cdef int compare(self, Py_ssize_t side) except -1 nogil
