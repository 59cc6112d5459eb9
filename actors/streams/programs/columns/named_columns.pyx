"""Rows to columns. Rows are dictionaries, objects of dataclasses or, where the names are known, tuples."""

import cython

from cpython.dict cimport PyDict_GetItemWithError, PyDict_Size
from cpython.object cimport PyObject

import dataclasses
from collections.abc import Mapping

from callboard.core.text import safe_repr


def named_columns(list rows not None, list names=None):
    """Return names, and for each of them a list of the rows' values: None where a row has no such value.

    Without `names` they are all that the rows have, in the order in which they come. Raises TypeError for a row of
    another type and a name that is no string, and ValueError for a tuple that is shorter or longer than `names`.
    """
    cdef Py_ssize_t n = len(rows), at, i
    cdef bint finds = names is None
    cdef dict classes = {}
    cdef set known = set()
    cdef list columns
    if finds:
        names = []
    columns = [[None] * n for _ in names]
    for at in range(n):
        row = rows[at]
        if isinstance(row, tuple) and not finds:
            if len(<tuple>row) != len(names):
                raise ValueError(f"{safe_repr(row)} has {len(<tuple>row)} values for {len(names)} columns")
            for i in range(len(names)):
                (<list>columns[i])[at] = (<tuple>row)[i]
            continue
        record = row if isinstance(row, dict) else record_of(row, classes)
        with cython.critical_section(record):
            if put(record, at, names, columns) < PyDict_Size(record) and finds:
                for name in [name for name in <dict>record if name not in known]:
                    if not isinstance(name, str):
                        raise TypeError(f"a column's name must be a string, got {safe_repr(name)}")
                    known.add(name)
                    names.append(name)
                    columns.append([None] * n)
                put(record, at, names, columns)
    return names, columns


cdef Py_ssize_t put(object record, Py_ssize_t at, list names, list columns) except -1:
    """Put the values of a row into the columns; return their number."""
    cdef Py_ssize_t i, found = 0
    cdef PyObject* value
    for i in range(len(names)):
        value = PyDict_GetItemWithError(record, names[i])
        if value != NULL:
            (<list>columns[i])[at] = <object>value
            found += 1
    return found


cdef dict record_of(object row, dict classes):
    """Make a dictionary of another row. `classes` has the fields of each class that came, None of a mapping."""
    cls = type(row)
    if cls not in classes:
        if isinstance(row, Mapping):
            classes[cls] = None
        elif dataclasses.is_dataclass(cls):
            classes[cls] = [field.name for field in dataclasses.fields(cls)]
        else:
            raise TypeError(f"to_arrow() expects rows that are dictionaries, got {safe_repr(row)}")
    fields = classes[cls]
    return dict(row) if fields is None else {name: getattr(row, name) for name in <list>fields}
