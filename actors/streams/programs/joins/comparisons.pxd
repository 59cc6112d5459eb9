# The comparisons of a predicate, on two values.
from callboard.streams.programs.joins.kernel.rules cimport JoinPredicate


cdef class Comparison:
    # Whether it holds for two values that are not missing.
    cpdef bint holds(self, object one, object other) except -1
    # Raise TypeError for a value that it cannot compare with the first value of the run, or None.
    cpdef check(self, object value, object first)
    # Whether it has a native form for integers of 64 bits and doubles, on either side.
    cpdef bint is_native(self) except -1
    cdef int add_to(self, JoinPredicate* predicate, bint is_whole) except -1


cdef class Nearness(Comparison):
    cdef readonly object distance
