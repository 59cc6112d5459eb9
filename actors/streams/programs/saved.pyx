"""The states of programs, as a snapshot takes them while the stream stands still."""

import cython
import threading

from cpython.object cimport PyObject

from callboard.rows.instants cimport as_given

from callboard.core.threads.interpreter import has_gil

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

# Values of other types may change once the stream goes on.
cdef set PLAIN = {type(None), bool, int, float, complex, str, bytes, date, datetime, time, timedelta, Decimal, UUID}
cdef int DEEPEST = 64
cdef bint HAS_GIL = has_gil()  # without it each thread counts its own references

cdef Py_ssize_t AHEAD = 16  # values that memory is asked for before they are looked at

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject PyLong_Type, PyUnicode_Type, PyFloat_Type, PyTuple_Type, PyList_Type, PyDict_Type, PySet_Type
    PyTypeObject PyFrozenSet_Type
    PyTypeObject* Py_TYPE(PyObject* value) noexcept
    Py_ssize_t Py_REFCNT(PyObject* value) noexcept
    Py_ssize_t PyList_GET_SIZE(PyObject* value) noexcept
    Py_ssize_t PyTuple_GET_SIZE(PyObject* value) noexcept
    PyObject* PyList_GET_ITEM(object value, Py_ssize_t at) noexcept
    PyObject* PyTuple_GET_ITEM(object value, Py_ssize_t at) noexcept
    bint PyDict_Next(object value, Py_ssize_t* at, PyObject** key, PyObject** each) noexcept
    void prefetch "__builtin_prefetch"(const void* place) noexcept


@cython.final
cdef class Columns:
    """Columns of values, with an entry for each state. The values in the columns numbered by `plain` do not change. A
    `piece` of them is encoded at a time.

    `keys`  says that the first column has keys, in the form in which they are compared
    `refs`  the number of references to a value that the program alone has; 0: unknown
    `late`  the Late whose states are the second column
    """

    cdef list columns
    cdef readonly Py_ssize_t piece
    cdef tuple plain
    cdef bint keys
    cdef Py_ssize_t refs
    cdef Late late

    def __init__(self, list columns, tuple plain=(), *, Py_ssize_t piece=8192, bint keys=False, Py_ssize_t refs=0,
                 Late late=None):
        self.columns, self.plain, self.piece = columns, plain, piece
        self.keys, self.refs, self.late = keys, refs, late

    def __len__(self):
        return len(self.columns[0])

    def can_wait(self):
        """Tell whether all values may be encoded after the pause: they are immutable, or nobody else refers to them."""
        cdef Py_ssize_t refs = self.refs if HAS_GIL else 0
        can = all([at in self.plain or stay(column, refs) for at, column in enumerate(self.columns)])
        if not can:
            self.let_go()
        return can

    def part(self, Py_ssize_t begin):
        """Return the columns of the piece that begins at a value."""
        cdef Py_ssize_t end = begin + self.piece
        parts = [column[begin:end] for column in self.columns]
        if self.keys:
            parts[0] = [as_given(key) for key in parts[0]]
        if self.late is not None:
            parts[1] = self.late.take(begin, min(end, len(self)))
        return parts

    def let_go(self):
        """Note that no further piece will be requested."""
        if self.late is not None:
            with self.late.lock:
                self.late.is_over = True


@cython.final
cdef class Late:
    """The states of a table's keys, which may be encoded after the cut. Safe in every thread.

    The table alone refers to each of them, so nothing else changes it.
    """

    def __init__(self, list keys, list states):
        self.lock = threading.Lock()
        self.keys, self.states, self.early = keys, states, {}

    cdef bint keep(self, object key, object state) except -1:
        if self.is_over:
            return False
        with self.lock:
            # A state that is not as it was at the cut has a new key, or one that was taken.
            if key not in self.early and stays(<PyObject*>state, Py_REFCNT(<PyObject*>state), 0):
                self.early[key] = copied(state)
        return True

    cdef list take(self, Py_ssize_t begin, Py_ssize_t end):
        """Return states as they were, to be encoded."""
        cdef list found = []
        cdef Py_ssize_t at
        with self.lock:
            for at in range(begin, end):
                key = self.keys[at]
                found.append(self.early.pop(key) if key in self.early else copied(self.states[at]))
                self.states[at] = None
        return found


cdef object copied(object value):
    """A copy, down to immutable values, of a value that stays(): it is a tree, and not deep."""
    if type(value) is list:
        return [copied(each) for each in <list>value]
    if type(value) is tuple:
        return tuple([copied(each) for each in <tuple>value])
    if type(value) is dict:
        return {key: copied(each) for key, each in (<dict>value).items()}
    if type(value) is set:
        return set(value)
    return value


cdef bint stay(list values, Py_ssize_t refs) except -1:
    """Whether no other code can change these. A value has `refs` references if the program alone has it."""
    cdef Py_ssize_t at, n = len(values)
    for at in range(n):
        if at + AHEAD < n:  # they are scattered in memory
            prefetch(PyList_GET_ITEM(values, at + AHEAD))
        if not stays(PyList_GET_ITEM(values, at), refs, 0):
            return False
    return True


cdef bint stays(PyObject* value, Py_ssize_t refs, int depth) except -1:
    """The same for one value, examined without a further reference. Within a value that a program alone has, each part
    has one reference."""
    cdef PyTypeObject* kind = Py_TYPE(value)
    cdef PyObject* each
    cdef PyObject* key
    cdef Py_ssize_t at = 0
    cdef bint is_ours
    if kind == &PyLong_Type or kind == &PyUnicode_Type or kind == &PyFloat_Type:  # as most are
        return True
    if depth == DEEPEST:
        return False
    is_ours = Py_REFCNT(value) == refs
    if kind == &PyTuple_Type:
        for at in range(PyTuple_GET_SIZE(value)):
            if not stays(PyTuple_GET_ITEM(<object>value, at), is_ours, depth + 1):
                return False
        return True
    if kind == &PyList_Type:
        if not is_ours:
            return False
        for at in range(PyList_GET_SIZE(value)):
            if not stays(PyList_GET_ITEM(<object>value, at), 1, depth + 1):
                return False
        return True
    if kind == &PyDict_Type:
        if not is_ours:
            return False
        while PyDict_Next(<object>value, &at, &key, &each):
            if not (stays(key, 0, depth + 1) and stays(each, 1, depth + 1)):
                return False
        return True
    if kind == &PyFrozenSet_Type or kind == &PySet_Type and is_ours:
        return stay(list(<object>value), 0)
    return <object><PyObject*>kind in PLAIN or is_batch(<object><PyObject*>kind)


cdef bint is_batch(cls) except -1:
    """Whether values are Arrow's record batches, without importing pyarrow."""
    # Not `type cls`: that takes no class of a metaclass, such as an enumeration.
    return cls.__name__ == "RecordBatch" and cls.__module__ == "pyarrow.lib"
