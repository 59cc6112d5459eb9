"""Which rows of a join are partners, where that is a question of numbers.

The times and the values of bands are handed to `callboard/streams/joining`, which finds partners
without looking at each pair, and without the interpreter. It answers as Python would: integers are
compared as integers of 64 bits, and numbers as floats where that changes nothing. What does not fit
is refused, and the join then compares by itself.
"""

import os

import cython

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t

# Where cells lie, which nobody is to choose.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")
# Differences of integers up to this are exact as floats, too.
cdef int64_t most_as_float = 2**52
# Differences of times up to this have 64 bits.
cdef int64_t most_as_time = 2**62


cdef bint is_whole(object value, int64_t* whole, int64_t most) except -1:
    cdef int overflow
    if not PyLong_CheckExact(value):
        return False
    whole[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0 and -most <= whole[0] <= most


cdef bint is_number(object value, double* number) except -1:
    cdef int64_t whole
    if PyFloat_Check(value):
        number[0] = PyFloat_AS_DOUBLE(value)
        return True
    if is_whole(value, &whole, most_as_float):
        number[0] = <double>whole
        return True
    return False


@cython.final
cdef class NumberMatch:
    """The windows of a join by strict time, and the batch of rows that is added to them next."""

    def __init__(self, within, distances):
        self.within = within
        self.distances = list(distances)

    def __dealloc__(self):
        del self.join

    @staticmethod
    def can_match(within, distances):
        """Whether such a join can be a question of numbers."""
        return 0 < len(distances) <= MOST_TERMS and all(
            [type(length) in (int, float) and length < most_as_float for length in (within, *distances)]
        )

    cdef bint add(self, uint8_t side, object time, uint64_t number, tuple values) except -1:
        """Add a row to the batch. False: it does not fit; this is of no use any more."""
        cdef int64_t whole = 0
        cdef double real = 0
        cdef uint32_t i
        if self.join == NULL:
            self.begin(time, values)
        if self.whole_times:
            if not is_whole(time, &whole, most_as_time):
                return False
            self.join.add_time(whole)
        else:
            if not is_number(time, &real):
                return False
            self.join.add_time(real)
        for i in range(self.whole.size()):
            if self.whole[i]:
                if not is_whole(values[i], &whole, INT64_MAX):
                    return False
                self.join.add_value(i, whole)
            else:
                if not is_number(values[i], &real):
                    return False
                self.join.add_value(i, real)
        self.join.add_row(side, number)
        return True

    cdef int begin(self, object time, tuple values) except -1:
        cdef JoinPredicate predicate
        self.whole_times = type(time) is int and type(self.within) is int
        for value, distance in zip(values, self.distances):
            self.whole.push_back(type(value) is int)
            if type(value) is not int:
                predicate.add(JoinTerm.band(NumberType.float64, distance))
            elif type(distance) is int:
                predicate.add(JoinTerm.whole_band(NumberType.int64, distance))
            else:
                predicate.add(JoinTerm.band(NumberType.int64, distance))
        if self.whole_times:
            self.join = new NumberJoin(predicate, <int64_t>self.within, SEED)
        else:
            self.join = new NumberJoin(predicate, <double>self.within, SEED)
        return 0

    cdef int match(self) except -1:
        """Find the partners of the rows of the batch, in `matches`, and begin the next one."""
        if self.join != NULL:
            with nogil:
                self.join.match(self.matches)
        return 0
