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
    """Values of as many states as a column is long. Those of the columns that `plain` numbers do not change. They are
    encoded in pieces of so many."""

    cdef readonly list columns
    cdef readonly Py_ssize_t piece
    cdef tuple plain

    def __init__(self, list columns, tuple plain=(), *, Py_ssize_t piece=8192):
        self.columns, self.plain, self.piece = columns, plain, piece

    def can_wait(self):
        """Tell whether all values stay as they are when the stream goes on."""
        return all([at in self.plain or stay(column) for at, column in enumerate(self.columns)])


cdef bint stay(list values) except -1:
    for value in values:
        if not (is_number_or_text(value) or cannot_change(value, 0)):
            return False
    return True


cdef bint cannot_change(object value, int depth) except -1:
    if type(value) is tuple:
        if depth == DEEPEST:
            return False
        for each in <tuple>value:
            if not (is_number_or_text(each) or cannot_change(each, depth + 1)):
                return False
        return True
    if type(value) is frozenset:
        return cannot_change(tuple(value), depth)
    return type(value) in PLAIN or is_batch(type(value))


cdef bint is_batch(type cls) except -1:
    """Whether values are Arrow's record batches, for which nobody need import pyarrow."""
    return cls.__name__ == "RecordBatch" and cls.__module__ == "pyarrow.lib"


cdef bint is_number_or_text(object value) noexcept:
    """As most values are, and this costs least."""
    return type(value) is int or type(value) is str or type(value) is float
