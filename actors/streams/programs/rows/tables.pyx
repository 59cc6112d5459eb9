"""The states of keys: those of one partition, or all of them."""

cimport cython
from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport as_given

from callboard.core.text import safe_repr
from callboard.streams.checks import check_value

cdef extern from "callboard/rows/instants.hpp" namespace "callboard":
    bint is_as_tuple(object value)

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()


@cython.final
cdef class EventTime:
    """The progress of event time: `time` is that of the latest watermark, or None."""


cdef class Table:
    """The states of one partition, or all of them. `homes` has the partitions of all present keys, if the user
    specifies them; `number` is that of the next key."""

    def __init__(self, bint in_parts, homes, Py_ssize_t number=0):
        self.homes = homes
        self.number = number
        self.states = {}
        self.born = {} if in_parts else None
        self.clock = EventTime()
        self.heap = []

    cdef int put(self, object key, object state, int64_t serial) except -1:
        """Give a new key its state. ValueError: it is or contains NaN, which would be a new key each time; or it is in
        another partition."""
        check_key("a key", as_given(key))
        assert holds(key not in self.states)
        if self.homes is not None:
            self.check_home(key, self.homes.setdefault(key, self.number))
        self.states[key] = state
        if self.born is not None:
            self.born[key] = serial
            assert holds(len(self.born) == len(self.states))
        return 0

    cdef int keep_late(self, object key, object state) except -1:
        if not self.late.keep(key, state):
            self.late = None
        return 0

    cdef int drop(self, object key) except -1:
        """Forget a key; it may come again."""
        del self.states[key]
        if self.homes is not None:
            del self.homes[key]
        if self.born is not None:
            del self.born[key]
        return 0

    cdef int check_home(self, object key, Py_ssize_t home) except -1:
        """ValueError: the user's function has put a key, or an equal one, elsewhere before."""
        if home != self.number:
            raise ValueError(
                f"equal keys have one partition, and {safe_repr(as_given(key))} has {home} and {self.number}"
            )
        return 0


cpdef int check_key(str what, object key, bint is_part=False) except -1:
    """ValueError: it is NaN, or a tuple with NaN in it, which is equal to itself only while it is the same object."""
    if is_as_tuple(key):
        Py_EnterRecursiveCall(" while looking for NaN")
        try:
            for part in <tuple>key:
                check_key(what, part, True)
        finally:
            Py_LeaveRecursiveCall()
    elif (type(key) is float and key == key) or type(key) in (int, str, bytes):
        return 0  # as most keys do, at no cost
    else:
        check_value(f"a part of {what}" if is_part else what, key)
    return 0
