"""The states of programs, as a snapshot takes them while the stream stands still."""

import cython

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

# Values of other types may change once the stream goes on.
cdef set PLAIN = {type(None), bool, int, float, complex, str, bytes, date, datetime, time, timedelta, Decimal, UUID}
cdef int DEEPEST = 64


@cython.final
cdef class Columns:
    """Values of as many states as a column is long. Those of the columns that `plain` numbers do not change."""

    cdef readonly list columns
    cdef tuple plain

    def __init__(self, list columns, tuple plain=()):
        self.columns, self.plain = columns, plain

    def can_wait(self):
        """Tell whether all values stay as they are when the stream goes on."""
        return all([at in self.plain or stay(column) for at, column in enumerate(self.columns)])


cdef bint stay(list values) except -1:
    cdef object value, last = None
    for value in values:
        if type(value) is not last:
            if not cannot_change(value, 0):
                return False
            if type(value) is not tuple and type(value) is not frozenset:
                last = type(value)
    return True


cdef bint cannot_change(object value, int depth) except -1:
    if type(value) is tuple or type(value) is frozenset:
        if depth == DEEPEST:
            return False
        for each in value:
            if not cannot_change(each, depth + 1):
                return False
        return True
    return type(value) in PLAIN
