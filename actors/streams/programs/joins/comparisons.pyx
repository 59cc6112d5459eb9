"""The comparisons of a join predicate: of Python values, of native numbers, and of numbers that stand for the values
of a column.

Whether two values are equal needs none of this: rows are found by a table of their values.
"""

import cython

from callboard.streams.programs.joins.kernel.rules cimport JoinPredicate, JoinTerm, NumberType

from callboard.core.text import safe_repr
from callboard.core.checks import is_missing

# Differences of integers up to this are exact as floats, too.
cdef object most_as_float = 2**52
cdef object most_steps = 2**64 - 1


cdef class Comparison:
    """The base. A subclass says `holds()`. With the rest numbers are compared natively, and columns of them."""

    can = ""  # which columns it compares, in a sentence; nothing: none

    cpdef bint holds(self, object one, object other) except -1:
        raise NotImplementedError

    cpdef check(self, object value, object first):
        """Raise TypeError for a value that cannot be compared with the first one, or None."""

    cpdef bint is_native(self) except -1:
        return False

    cdef int add_to(self, JoinPredicate* predicate, bint is_whole) except -1:
        raise NotImplementedError

    def on(self, scale):
        """The same of the numbers that a column's values are."""
        raise NotImplementedError


@cython.final
cdef class Nearness(Comparison):
    """Two values are at most a distance apart."""

    can = "Band compares numbers and times"

    def __init__(self, distance):
        self.distance = distance

    def __reduce__(self):
        return Nearness, (self.distance,)

    cpdef bint holds(self, object one, object other) except -1:
        try:
            return distance_between(one, other) <= self.distance
        except OverflowError:  # of a float and an integer that none is
            raise
        except Exception:  # of NaN, which is a float, among Decimals or times
            if is_missing(one) or is_missing(other):
                return False
            raise

    cpdef check(self, object value, object first):
        try:
            bool(distance_between(value, value if first is None else first) <= self.distance)
        except ArithmeticError:  # it has one, which is too large, or that of infinity to itself
            pass
        except Exception as error:
            others = "" if first is None else f", and to {safe_repr(first)}, as others have"
            raise TypeError(f"a Band of {safe_repr(self.distance)} compares values that have such a distance to "
                            f"each other{others}, not {safe_repr(value)}") from error

    cpdef bint is_native(self) except -1:
        return type(self.distance) in (int, float) and self.distance < most_as_float

    cdef int add_to(self, JoinPredicate* predicate, bint is_whole) except -1:
        if not is_whole:
            predicate.add(JoinTerm.band(NumberType.float64, self.distance))
        elif type(self.distance) is int:
            predicate.add(JoinTerm.whole_band(NumberType.int64, self.distance))
        else:
            predicate.add(JoinTerm.band(NumberType.int64, self.distance))
        return 0

    def on(self, scale):
        distance = scale.length("a band's distance", self.distance)
        return Nearness(distance if scale.name == "floats" else min(distance, most_steps))


cdef object distance_between(object one, object other):
    """How far two values are from each other."""
    try:
        if one < other:
            one, other = other, one  # of NumPy's unsigned numbers only the larger less the smaller is right
    except TypeError:  # complex numbers have no order
        pass
    return abs(one - other)


@cython.final
cdef class Named:
    """Finds a value by its name: a key of a dictionary, else an attribute."""

    cdef object name

    def __init__(self, str name not None):
        self.name = name

    def __call__(self, row):
        if isinstance(row, dict):
            return (<dict>row)[self.name]
        return getattr(row, self.name)

    def __reduce__(self):
        return Named, (self.name,)
