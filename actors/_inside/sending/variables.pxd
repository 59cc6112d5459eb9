# Context variables (PEP 567): each actor has its own. They are set while its code runs, and kept in
# its cell otherwise.
#
# CPython makes a thread's context when the first variable is set in it, so an actor that sets none has none. Then
# null moves between the cell and the thread, and costs a look. Only ownership moves, no reference count changes, so
# a native actor's dispatch does it without the interpreter. The version invalidates what ContextVar.get()
# remembers, as PyContext_Enter() does it. A worker's thread itself has none: WorkerThread sets aside what is in
# place around a dispatch. Python code that runs between two dispatches, such as the callback of an actor's
# finalizer, may set some all the same; they belong to no actor.
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from callboard._inside.sending.actor_cell cimport ActorCell
from callboard.core.thread_state cimport PyThreadState, set_variables
from callboard.scheduling.context cimport Context

cdef extern from "Python.h":
    PyThreadState* PyThreadState_Get()
    object PyContext_New()
    object PyContext_CopyCurrent()


cdef inline void enter_variables(ActorCell* cell, Context* context) noexcept nogil:
    """Put the variables of `cell` in place, which those of no other actor take."""
    cdef PyThreadState* thread = <PyThreadState*>context.python
    if thread.context == <PyObject*>cell.variables:  # most often both are null
        return
    if thread.context != NULL:
        drop_strays(context)
    if cell.variables != NULL:
        set_variables(thread, <PyObject*>cell.variables)
        cell.variables = NULL


cdef inline void drop_strays(Context* context) noexcept with gil:
    replace(context, NULL)


cdef inline void leave_variables(ActorCell* cell, Context* context) noexcept nogil:
    """Remove them again, before the readiness is given up, which another thread may have then."""
    cdef PyThreadState* thread = <PyThreadState*>context.python
    if thread.context != NULL:
        cell.variables = set_variables(thread, NULL)


cdef inline void replace(Context* context, PyObject* variables) noexcept:
    """Put `variables`, a context that is handed over, or null, in the place of those that are there."""
    Py_XDECREF(set_variables(<PyThreadState*>context.python, variables))


cdef inline object kept(Context* context):
    """Return the context that is in place, for code that goes on with it; a new one where there is none."""
    cdef PyThreadState* thread = <PyThreadState*>context.python
    if thread.context == NULL:
        made = PyContext_New()
        Py_INCREF(made)
        replace(context, <PyObject*>made)
    return <object>thread.context


cdef inline object current_variables():
    """Return a copy of the calling thread's context; None if no variable was ever set in it."""
    cdef PyThreadState* thread = PyThreadState_Get()
    return PyContext_CopyCurrent() if thread.context != NULL else None
