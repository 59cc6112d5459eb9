# Each actor has context variables (PEP 567) of its own. They are in place while its code runs, and in
# its cell otherwise.
#
# CPython makes a thread's context when the first variable is set in it, so an actor that sets none has
# none: null moves between the cell and the thread, and costs a comparison. Only ownership moves, no
# reference count changes, so a native actor's dispatch does it without the interpreter. The version
# invalidates what ContextVar.get() remembers, as PyContext_Enter() does it. Dispatches nest: what was in
# place around one is put back after it.
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from callboard.scheduling.cell cimport Cell, Context

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        PyObject* context
        uint64_t context_ver

    void XDECREF "Py_XDECREF" (PyObject*)


cdef inline PyObject* put_on(Cell* cell, Context* context) noexcept nogil:
    """Put the variables of `cell` in place. Returns those around them, for take_off()."""
    cdef PyThreadState* thread = <PyThreadState*>context.python
    cdef PyObject* outer = thread.context
    if outer != <PyObject*>cell.variables:
        thread.context = <PyObject*>cell.variables
        thread.context_ver += 1
        cell.variables = NULL
    return outer


cdef inline void take_off(Cell* cell, Context* context, PyObject* outer) noexcept nogil:
    """Take them out of place again: before the readiness is given up, which another may have then."""
    cdef PyThreadState* thread = <PyThreadState*>context.python
    if thread.context != outer:
        cell.variables = thread.context
        thread.context = outer
        thread.context_ver += 1


cdef inline void replace(Context* context, PyObject* variables) noexcept:
    """Put `variables`, a context that is handed over, or null, in the place of those that are there."""
    cdef PyThreadState* thread = <PyThreadState*>context.python
    cdef PyObject* before = thread.context
    if before != variables:
        thread.context = variables
        thread.context_ver += 1
        XDECREF(before)
