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
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

# Where cells lie, which nobody is to choose.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")
# Differences of integers up to this are exact as floats, too.
cdef int64_t most_as_float = 2**52
# Differences of times up to this have 64 bits.
cdef int64_t most_as_time = 2**62

cdef extern from *:
    """
    #define MOST_TERMS 4
    """
    const Py_ssize_t MOST_TERMS


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
        self.values_whole.resize(len(distances))
        self.values.resize(len(distances))

    def __dealloc__(self):
        del self.by_whole_time
        del self.by_time

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
        cdef Py_ssize_t i
        if not self.begun and not self.begin(time, values):
            return False
        if self.whole_times:
            if not is_whole(time, &whole, most_as_time):
                return False
            self.times_whole.push_back(whole)
        else:
            if not is_number(time, &real):
                return False
            self.times.push_back(real)
        for i in range(len(values)):
            if self.whole[i]:
                if not is_whole(values[i], &whole, INT64_MAX):
                    return False
                self.values_whole[i].push_back(whole)
            else:
                if not is_number(values[i], &real):
                    return False
                self.values[i].push_back(real)
        self.sides.push_back(side)
        self.numbers.push_back(number)
        return True

    cdef bint begin(self, object time, tuple values) except -1:
        """The first row says of what types all are."""
        cdef Py_ssize_t i
        cdef JoinSettings[int64_t] by_whole_time
        cdef JoinSettings[double] by_time
        self.whole_times = type(time) is int and type(self.within) is int
        for i in range(len(values)):
            self.whole[i] = type(values[i]) is int
        if self.whole_times:
            by_whole_time.rule = JoinRule.strict
            by_whole_time.within = self.within
            by_whole_time.seed = SEED
            by_whole_time.predicate = self.predicate()
            self.by_whole_time = new IndexedJoin[int64_t](by_whole_time)
        else:
            by_time.rule = JoinRule.strict
            by_time.within = self.within
            by_time.seed = SEED
            by_time.predicate = self.predicate()
            self.by_time = new IndexedJoin[double](by_time)
        self.begun = True
        return True

    cdef JoinPredicate predicate(self) except *:
        cdef JoinPredicate found
        cdef Py_ssize_t i
        for i, distance in enumerate(self.distances):
            if not self.whole[i]:
                found.add(JoinTerm.band(NumberType.float64, distance))
            elif type(distance) is int:
                found.add(JoinTerm.whole_band(NumberType.int64, distance))
            else:
                found.add(JoinTerm.band(NumberType.int64, distance))
        return found

    cdef int match(self) except -1:
        """Find the partners of the rows of the batch, in `matches`, and begin the next one."""
        cdef JoinBatch[int64_t] by_whole_time
        cdef JoinBatch[double] by_time
        cdef Py_ssize_t i
        if self.whole_times:
            by_whole_time.times = self.times_whole.data()
            by_whole_time.rows = self.sides.size()
            by_whole_time.sides = self.sides.data()
            by_whole_time.numbers = self.numbers.data()
            for i in range(len(self.distances)):
                by_whole_time.values[i] = self.column(i)
            with nogil:
                self.by_whole_time.join(by_whole_time, self.matches)
        elif self.begun:
            by_time.times = self.times.data()
            by_time.rows = self.sides.size()
            by_time.sides = self.sides.data()
            by_time.numbers = self.numbers.data()
            for i in range(len(self.distances)):
                by_time.values[i] = self.column(i)
            with nogil:
                self.by_time.join(by_time, self.matches)
        for i in range(len(self.distances)):
            self.values[i].clear()
            self.values_whole[i].clear()
        self.times.clear()
        self.times_whole.clear()
        self.sides.clear()
        self.numbers.clear()
        return 0

    cdef const void* column(self, Py_ssize_t i) noexcept:
        return <const void*>self.values_whole[i].data() if self.whole[i] else <const void*>self.values[i].data()
