"""The fields of CPython's thread states that callboard uses."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState:
        PyObject* context     # of the context variables; null until one is set
        uint64_t context_ver  # the version of ContextVar.get()'s cached value


cdef inline PyObject* set_variables(PyThreadState* thread, PyObject* variables) noexcept nogil:
    """Set the thread's context, which may be null, and return the previous one. Both are owned references."""
    cdef PyObject* before = thread.context
    if before != variables:
        thread.context = variables
        thread.context_ver += 1
    return before
