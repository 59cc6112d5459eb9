# The comparisons of a predicate, on two values.
from callboard.streams.programs.joins.kernel.rules cimport JoinPredicate


cdef class Comparison:
    # Whether it holds for two values, of which neither is missing.
    cpdef bint holds(self, object one, object other) except -1
    # Raise TypeError for a value that it cannot compare with the first one that came, or None, of any stream.
    cpdef check(self, object value, object first)
    # Whether it can say natively what it says of numbers, whichever is the left one: of integers of 64 bits or doubles.
    cpdef bint is_native(self) except -1
    cdef int add_to(self, JoinPredicate* predicate, bint is_whole) except -1


cdef class Nearness(Comparison):
    cdef readonly object distance
