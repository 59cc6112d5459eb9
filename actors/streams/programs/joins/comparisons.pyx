"""The comparisons of a join predicate: of Python values, of native numbers, and of the numbers of a column.

Equality needs none of this, as a table of values finds the rows.
"""

import cython

from callboard.streams.programs.joins.kernel.rules cimport JoinPredicate, JoinTerm, NumberType

from callboard.core.text import safe_repr
from callboard.core.checks import is_missing

# Differences of integers up to this are exact as floats, too.
cdef object most_as_float = 2**52
cdef object most_steps = 2**64 - 1


cdef class Comparison:
    """The base. A subclass defines `holds()`; the other methods are for native comparisons of numbers and columns."""

    can = ""  # a sentence about the columns that it compares; empty: none

    cpdef bint holds(self, object one, object other) except -1:
        raise NotImplementedError

    cpdef check(self, object value, object first):
        """Raise TypeError for a value that cannot be compared with the first one, or None."""

    cpdef bint is_native(self) except -1:
        return False

    cdef int add_to(self, JoinPredicate* predicate, bint is_whole) except -1:
        raise NotImplementedError

    def on(self, scale):
        """Return the comparison of a column's numbers."""
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
        except OverflowError:  # a float and an integer beyond all floats
            raise
        except Exception:  # of NaN, which is a float, among Decimals or times
            if is_missing(one) or is_missing(other):
                return False
            raise

    cpdef check(self, object value, object first):
        try:
            bool(distance_between(value, value if first is None else first) <= self.distance)
        except ArithmeticError:  # there is a distance, but it is too large, or of infinity to itself
            pass
        except Exception as error:
            others = "" if first is None else f" from {safe_repr(first)}"
            raise TypeError(f"a Band of {safe_repr(self.distance)}: expected a value with such a distance{others}, got "
                            f"{safe_repr(value)}") from error

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
    """Return the distance of two values."""
    try:
        if one < other:
            one, other = other, one  # NumPy's unsigned numbers overflow the other way round
    except TypeError:  # complex numbers have no order
        pass
    return abs(one - other)


@cython.final
cdef class Named:
    """Reads a value by its name: a key of a dictionary, or else an attribute."""

    cdef object name

    def __init__(self, str name not None):
        self.name = name

    def __call__(self, row):
        if isinstance(row, dict):
            return (<dict>row)[self.name]
        return getattr(row, self.name)

    def __reduce__(self):
        return Named, (self.name,)
