"""Answers, of which some are futures: the ask is deferred to one then, and gets its outcome."""

cimport cython
from cpython.object cimport PyObject

from callboard._inside.answers.circles cimport circle, lengthen
from callboard._inside.answers.future cimport Future
from callboard._inside.life.owed cimport owe
from callboard._inside.sending.ref cimport ActorRef

from callboard._inside.answers.foreign import future_of
from callboard.core.errors import AskDeadlock

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        unsigned long tp_flags
        void* tp_as_async
    const unsigned long HEAPTYPE "Py_TPFLAGS_HEAPTYPE"
    PyTypeObject* Py_TYPE(PyObject* value)


cdef inline bint may_be_foreign(PyObject* value) noexcept:
    """Tell quickly of most values that they are no futures of asyncio or concurrent.futures."""
    cdef PyTypeObject* kind = Py_TYPE(value)
    return kind.tp_flags & HEAPTYPE or kind.tp_as_async != NULL


cdef object answer_with(ActorRef ref, Future asked, object value):
    """Answer an ask. Return None, or the AskDeadlock that the answer would close: the ask is still open."""
    cdef Future other
    cdef object error
    cdef object answer = value
    if not isinstance(answer, Future):
        answer = future_of(answer) if may_be_foreign(<PyObject*>answer) else None
    if answer is None:
        asked.complete(value, None)
        return None
    other = <Future>answer
    with cython.critical_section(asked):
        done = asked.flag.is_set()
        if not done:
            asked.deferred_to = other
    if done:
        if isinstance(asked.error, AskDeadlock):  # it was void before its handler came to its end
            other.complete(None, asked.error)
        return None
    error = circle(ref, asked, other)
    if error is None:
        if other.target is None:
            owe(ref, asked, other)
        if not other.attach(asked):
            asked.complete(other.value, other.error)
            return None
        error = lengthen(asked, other)
        if error is None:
            return None
        other.detach(asked)
    with cython.critical_section(asked):
        asked.deferred_to = None
    return error
