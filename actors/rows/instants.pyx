"""Aware datetimes, compared as moments in time.

Python compares, subtracts and hashes two datetimes of one zone by what its clock shows, and ignores
`fold`. Where the clock is set back by an hour, two moments count as one. Where it is put forward,
an hour too many lies between two moments. Between zones, a datetime in such an hour is equal to no
other. In UTC all of this is right. So callboard computes with the `instant_of()` a value, and hands
results out `in_zone()` that the value came in.

Moments in tuples and lists are found, too, because these compare their items. Naive datetimes have
no zone and stay as they are: Python cannot order them together with aware ones.
"""

cimport cython
from cpython.datetime cimport PyDateTime_Check, import_datetime

from datetime import datetime, timezone

cdef extern from "callboard/rows/instants.hpp" namespace "callboard":
    bint is_plain(object value)
    bint is_as_tuple(object value)
    bint is_as_list(object value)
    int go_deeper() except -1

cdef extern from "Python.h":
    void Py_LeaveRecursiveCall()

import_datetime()

cdef object UTC = timezone.utc
cdef object EARLIEST = datetime.min.replace(tzinfo=UTC)
cdef object LATEST = datetime.max.replace(tzinfo=UTC)


cpdef object instant_of(object value):
    """Return the form in which a value is compared, subtracted and hashed.

    For an aware datetime that is the datetime in UTC. For a tuple or a list it is one with such
    datetimes in their places. Anything else is its own form. UTC has no years for the calendar's
    first and last hours; these become its first and its last microsecond.
    """
    if is_plain(value):
        return value
    if PyDateTime_Check(value):
        return moment_of(value)
    if is_as_tuple(value) or is_as_list(value):
        return moments_in(value)
    return value


cdef object moment_of(object value):
    zone = value.tzinfo
    if zone is None or zone is UTC or value.utcoffset() is None:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return EARLIEST if value.year == 1 else LATEST


cdef object moments_in(object values):
    cdef list found = None
    cdef Py_ssize_t at = 0
    go_deeper()
    try:
        for value in values:
            instant = instant_of(value)
            if instant is not value:
                if found is None:
                    found = list(values)
                found[at] = instant
            at += 1
    finally:
        Py_LeaveRecursiveCall()
    if found is None:
        return values
    return tuple(found) if isinstance(values, tuple) else found


cpdef object zone_of(object value):
    """Return the zone of an aware datetime; None for all else."""
    if is_plain(value) or not PyDateTime_Check(value) or value.tzinfo is None or value.utcoffset() is None:
        return None
    return value.tzinfo


cpdef object in_zone(object instant, object zone):
    """Return an instant in a zone; as it is without a zone, or if the zone has no year for it."""
    if zone is None:
        return instant
    try:
        return instant.astimezone(zone)
    except OverflowError:
        return instant


@cython.final
cdef class MomentKey:
    """A key with moments in it: equal and hashed as they are. `as_given()` has the key itself."""

    def __hash__(self):
        return self.hashed

    def __eq__(self, other):
        instant = (<MomentKey>other).instant if type(other) is MomentKey else other
        return bool(self.instant == instant)

    def __repr__(self):
        return repr(self.given)


cpdef object as_key(object value):
    """Return the key that stands for a value where keys are compared.

    Raises TypeError if it has no hash.
    """
    cdef MomentKey key
    instant = instant_of(value)
    if instant is value:
        return value
    key = MomentKey.__new__(MomentKey)
    key.instant, key.given, key.hashed = instant, value, hash(instant)
    return key


cpdef object as_given(object key):
    """Return the value that a key stands for."""
    return (<MomentKey>key).given if type(key) is MomentKey else key
