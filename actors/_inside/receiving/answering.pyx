"""The end of a handler or its coroutine, and the answer: some are futures, to which the ask is deferred then."""

cimport cython
from cpython.object cimport PyObject

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.wait_graph cimport circle, lengthen
from callboard._inside.life.ending cimport begin_stop, defer_to_own, note_left
from callboard._inside.life.failure cimport fail_message
from callboard._inside.life.start cimport note_started
from callboard._inside.sending.letter cimport RUN, START, copy_of
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.asserting cimport holds

from callboard._inside.answers.foreign import future_of
from callboard.core.errors import AskDeadlock
from callboard.core.text import safe_str


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
            defer_to_own(ref, asked, other)
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


# --- the end of a handler ------------------------------------------------------------------------------


# How the errors begin that asyncio raises where no event loop runs.
cdef tuple NO_LOOP = ("no running event loop", "There is no current event loop")


cdef object with_advice(ActorRef ref, object raised):
    """Say what to do about it where asyncio says that there is no loop."""
    if type(raised) is RuntimeError and safe_str(raised).startswith(NO_LOOP):
        advice = RuntimeError(
            f"{raised}: {ref._short_path} uses asyncio, and must be spawned with event_loop=True for that")
        return advice.with_traceback(raised.__traceback__)
    return raised


cdef void finish(ActorRef ref, Envelope* envelope, object answer) noexcept:
    """The handler, or its coroutine, returned `answer`. A task has done its work."""
    if envelope.message == <PyObject*>RUN:
        assert holds(ref.recipe.runs)
        begin_stop(ref)
        return
    if envelope.message == <PyObject*>START:
        if ref.starting:
            note_started(ref)
        else:
            note_left(ref, None)
        return
    if envelope.reply_to != NULL and not envelope.stashed:
        error = answer_with(ref, <Future>envelope.reply_to, answer)
        if error is not None:
            fail_message(ref, error, copy_of(envelope))
