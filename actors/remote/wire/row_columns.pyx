"""Rows turned into columns."""

from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE


def columns_of(list rows not None):
    """Return the columns of rows that are tuples, all of one length; None if they are not, or are empty."""
    cdef Py_ssize_t count = len(rows)
    cdef Py_ssize_t width, at, place, _place
    cdef object row, value
    if count == 0 or not PyTuple_CheckExact(rows[0]) or not rows[0]:
        return None
    width = PyTuple_GET_SIZE(rows[0])
    cdef list columns = [PyList_New(count) for _place in range(width)]
    for at in range(count):
        row = rows[at]
        if not PyTuple_CheckExact(row) or PyTuple_GET_SIZE(row) != width:
            return None
        for place in range(width):
            value = <object>PyTuple_GET_ITEM(row, place)
            Py_INCREF(value)  # which the list takes
            PyList_SET_ITEM(<object>PyList_GET_ITEM(columns, place), at, value)
    return columns
