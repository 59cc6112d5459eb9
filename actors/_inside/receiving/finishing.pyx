"""The end of a handler, and of its coroutine."""

from cpython.object cimport PyObject

from callboard._inside.answers.future cimport Future
from callboard._inside.life.ending cimport begin_stop, note_left
from callboard._inside.life.failure cimport fail_message
from callboard._inside.life.start cimport note_started
from callboard._inside.receiving.answering cimport answer_with
from callboard._inside.sending.letter cimport RUN, START, copy_of
from callboard.core.asserting cimport holds

from callboard.core.text import safe_str

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
