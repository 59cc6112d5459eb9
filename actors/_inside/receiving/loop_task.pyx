"""`async def receive` of an actor that was spawned with `event_loop=True`.

The worker hands the coroutine to the event loop's thread, where it is a task of asyncio, and takes the actor up
again when the task is over. In between the actor waits in the middle of a message: only the task touches it. The
dispatch drives an LoopTask as it drives a coroutine that awaits one future.

Events that would touch the actor's object (a stop, a restart, a failure of its children) are put off
until the task is over. A stop and a restart cancel the task.

A step of the task is held back while messages that it has sent wait for room: see pending_sends.pyx.
"""

import asyncio
import contextvars
from collections.abc import Coroutine

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.thread_locals cimport ActorContext, actor_context
from callboard._inside.life.unfinished cimport hold_for_failure, rest_until
from callboard._inside.sending.actor_cell cimport cell_of
from callboard._inside.sending.pending_sends cimport Outgoing
from callboard._inside.sending.ref cimport SUSPENDED, ActorRef, Extra
from callboard._inside.sending.stored_envelope cimport StoredEnvelope, variables_of
from callboard._inside.sending.variables cimport kept
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport (
    PYGEN_ERROR, PYGEN_NEXT, PYGEN_RETURN, PyIter_Send, PySendResult, reraise, set_steps,
)
from callboard.core.clock cimport monotonic_ns
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport current_context
from callboard.scheduling.forward cimport Worker

from callboard.core.errors import CallboardError, MailboxFull
from callboard.core.text import safe_repr


cdef extern from "Python.h":
    int PyCoro_CheckExact(PyObject* object)


class TaskEnded(CallboardError):
    """A task raised SystemExit or KeyboardInterrupt, its cause, which would end the loop for all."""


cdef LoopTask make_loop_task(ActorRef ref, object coroutine, object variables=None):
    cdef LoopTask loop_task = LoopTask.__new__(LoopTask)
    loop_task.ref = ref
    loop_task.coroutine = coroutine
    loop_task.context = variables if variables is not None else kept(current_context())
    loop_task.outcome = Future()
    loop_task.postponed = []
    return loop_task


def with_actor(coroutine):
    """Have a task that an actor's task makes, such as one of gather()'s, send as the actor, too."""
    cdef Cell* current = current_context().current
    if current == NULL:
        return coroutine
    return task_coroutine(<LoopTask?>(<ActorRef>current.owner).extra.loop_task, coroutine, False)


def variables_in_work():
    """Return the context variables that the message in work was sent with, or None."""
    cdef Cell* current = current_context().current
    if current == NULL or cell_of(<ActorRef>current.owner).in_work == NULL:
        return None
    return variables_of(cell_of(<ActorRef>current.owner).in_work)


def begin_event_loop():
    """Note that the calling thread is that of a system's event loop, which must not wait for room."""
    actor_context().on_event_loop = True


def as_event_loop(function):
    """Call a function as the thread of an event loop would, and in no actor's dispatch."""
    cdef ActorContext* context = actor_context()
    cdef Worker* worker = context.worker
    cdef Cell* current = context.current
    context.worker = NULL
    context.current = NULL
    context.on_event_loop = True
    try:
        return function()
    finally:
        context.on_event_loop = False
        context.current = current
        context.worker = worker


cdef object task_coroutine(LoopTask loop_task, object coroutine, bint is_main):
    cdef _TaskCoroutine made = _TaskCoroutine.__new__(_TaskCoroutine)
    made.loop_task = loop_task
    made.coroutine = coroutine
    made.is_main = is_main
    return made


cdef class LoopTask(TaskElsewhere):
    """Stands for the coroutine where the dispatch drives it."""

    # --- on the worker ----------------------------------------------------------------------------------

    def send(self, value):
        """Go on: wait for the outcome, then end with it."""
        if not self.outcome.done():
            return self.outcome
        raise StopIteration(self.outcome.result())

    def throw(self, error):
        """End, because the actor cannot wait."""
        raise error

    def close(self):
        """Let go the work that was not begun; begun work is over."""
        if not self.launched:
            self.ref.extra.loop_task = None
            self.coroutine.close()

    cdef void launch(self) noexcept:
        """Tell the loop. The worker touches the actor no more, but for its system messages."""
        cdef Extra extra = self.ref.extra
        if self.launched:
            return
        self.launched = True
        assert holds((self.ref.phase == SUSPENDED or extra.leaving is not None) and cell_of(self.ref).in_work == NULL)
        self.envelope = extra.stored.lend()
        self.envelope.stashed = extra.stashed
        cell_of(self.ref).in_work = &self.envelope
        try:
            self.ref.runtime.event_loop.call(self.begin, self.context)
        except BaseException as error:
            self.coroutine.close()
            self.end(None, error)

    cdef bint cancel(self) noexcept:
        """Have the task cancelled, once. Its end is told as any other."""
        if self.cancelled:
            return True
        self.cancelled = True
        try:
            # In a new context: to copy the worker's would be to read the actor's, which the task
            # is changing.
            self.ref.runtime.event_loop.call(self.cancel_task, contextvars.Context())
        except RuntimeError:
            pass  # the loop was closed, and has cancelled what it had
        return True

    cdef bint recall(self) noexcept:
        """Have the coroutine, of which nothing has run, never begin. False: it is about to end."""
        if self.over or self.cancelled or self.withdrawn:
            return False
        self.over = self.recalled = True
        self.coroutine.close()
        return True

    cdef bint was_cancelled(self) noexcept:
        """Tell whether the task ended because it was cancelled for the actor's end."""
        return self.cancelled and isinstance((<Future>self.outcome).error, asyncio.CancelledError)

    cdef bint is_of(self, object asked) noexcept:
        """Tell whether it is the work on this ask."""
        return <PyObject*>asked == self.envelope.reply_to and not self.envelope.stashed

    cdef void withdraw(self) noexcept:
        """Have the task cancelled, because the asker has cancelled the ask. The actor goes on."""
        self.launch()
        self.withdrawn = True
        try:
            self.ref.runtime.event_loop.call(self.withdraw_task, contextvars.Context())
        except RuntimeError:
            pass  # as in cancel()

    # --- on the loop's thread ---------------------------------------------------------------------------

    def begin(self):
        """Make the task, unless the actor has ended, or the ask was cancelled."""
        if self.recalled:
            return
        if self.cancelled or self.withdrawn:
            self.coroutine.close()
            self.end(None, asyncio.CancelledError())
            return
        coroutine = task_coroutine(self, self.coroutine, True)
        self.task = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), context=self.context)

    def cancel_task(self):
        """Cancel the task; if it is over, and only what it sent holds the end up, end."""
        if self.over:
            return
        if self.ending is not None:
            self.finish()
        elif self.task is not None:
            self.task.cancel()

    def withdraw_task(self):
        """Cancel the task, and the ask of the actor's that it awaits, if nobody else waits for that."""
        cdef Future awaited
        if self.over or self.ending is not None or self.task is None:
            return
        awaited = self.ref.extra.awaited_there
        self.task.cancel()
        if awaited is not None and (awaited.asker is self.ref or awaited.target is None):
            asyncio.get_running_loop().call_soon(awaited._abandon, None)  # when the task waits no more

    cdef void take_answer(self, object answer) except *:
        """The task has ended with this."""
        if PyCoro_CheckExact(<PyObject*>answer):  # it is to be awaited, too
            self.coroutine = answer
            self.begin()
        else:
            self.collect(answer, None)

    def take_error(self, task):
        """The task has failed, or was cancelled."""
        try:
            task.result()
        except TaskEnded as error:
            self.collect(None, error.__cause__)
        except BaseException as error:
            self.collect(None, error)

    cdef void collect(self, object answer, object error) except *:
        """The task is over."""
        cdef Outgoing outgoing = <Outgoing>self.ref.extra.outgoing
        assert holds(self.ending is None and not self.over)
        self.ending = (answer, error)
        if outgoing is not None and outgoing.messages and not self.cancelled and (
            self.message is not None or not isinstance(self.ending[1], asyncio.CancelledError)
        ):
            outgoing.ends.append(self.finish)
        else:
            self.finish()

    def have_wait(self, ActorRef to, StoredEnvelope stored, variables):
        """Have a message that the actor sends to a full mailbox wait for room."""
        cdef Extra extra = self.ref.extra
        if extra.outgoing is None:
            extra.outgoing = Outgoing.__new__(Outgoing)
        (<Outgoing>extra.outgoing).add(to, stored, variables, self)

    cdef object held_back(self, object step, object error):
        """Return what a step that would go on, perhaps with `error`, is to wait for first, or None.

        Raises MailboxFull, of a message that found no room.
        """
        cdef Outgoing outgoing = <Outgoing>self.ref.extra.outgoing
        if outgoing is None:
            return None
        is_cancelled = isinstance(error, asyncio.CancelledError)
        refusal = None if is_cancelled else outgoing.take_refusal(self)
        if refusal is None and not is_cancelled and outgoing.holds_back(step):
            return outgoing.wait(step)
        outgoing.let_go_on(step)
        if outgoing.is_over():
            self.ref.extra.outgoing = None
        if refusal is not None:
            refusal.__context__ = error
            raise refusal
        return None

    def finish(self):
        """End as the coroutine did; what it sent has found its room, or does not wait any longer."""
        cdef Outgoing outgoing = <Outgoing>self.ref.extra.outgoing
        value, error = self.ending
        if outgoing is not None:
            if self.finish in outgoing.ends:
                outgoing.ends.remove(self.finish)
            outgoing.send_all()
            assert holds(not outgoing.messages)
            refusal = outgoing.take_refusal(self)
            if error is None:
                error = refusal
            if outgoing.is_over():
                self.ref.extra.outgoing = None
        self.end(value if error is None else None, error)

    def end(self, value, error):
        """Hand the actor back to its worker."""
        if self.over:
            return
        self.over = True
        if self.message is not None:
            self.step_lock.unbegun.pop(self.message, None)
        else:
            assert holds(self.launched and cell_of(self.ref).in_work == &self.envelope)
            self.ref.note_wait(None)
            self.ref.extra.stashed = self.envelope.stashed
            cell_of(self.ref).in_work = NULL
        self.task = self.coroutine = None
        (<Future>self.outcome).complete(value, error)


cdef class _TaskCoroutine:
    """A coroutine whose steps are the actor's: what they send is sent by it."""

    cdef LoopTask loop_task
    cdef object coroutine
    cdef tuple kept           # what to go on with when it is no longer held back
    cdef Outgoing outgoing    # where it waits for room
    cdef bint is_main         # the coroutine of `receive`, not of a task that it made
    cdef bint has_ended       # and its answer was the result of the last step

    def __await__(self):
        return self

    def send(self, value):
        """Go on."""
        answer = self.go_on_or_end(value, None)
        if self.has_ended:
            raise StopIteration(answer)
        return answer

    def throw(self, kind, error=None, traceback=None):
        """Go on with an exception."""
        answer = self.go_on_or_end(None, kind if error is None else error)
        if self.has_ended:
            raise StopIteration(answer)
        return answer

    cdef object go_on_or_end(self, object value, object error):
        """Return what is awaited, or the answer, which the LoopTask gets at once; errors come by the task."""
        try:
            result = self.step(value, error)
        except BaseException:
            if self.is_main and not self.loop_task.recalled:
                self.loop_task.task.add_done_callback(self.loop_task.take_error)
            raise
        if self.has_ended and self.is_main and not self.loop_task.recalled:
            self.loop_task.take_answer(result)
        return result

    cdef object step(self, object value, object error):
        assert holds(actor_context().on_event_loop)
        if self.loop_task.recalled:
            return self.end_unbegun()
        if self.kept is not None:
            if error is None:
                value, error = self.kept
            self.kept = None
            if self.loop_task.over:
                self.wait_no_more()
        if self.loop_task.over:
            return self.go_on(value, error)
        try:
            awaited = self.loop_task.held_back(self, error)
        except MailboxFull as refusal:
            value, error = None, refusal
        else:
            if awaited is not None:
                self.kept = (value, error)
                self.outgoing = <Outgoing>self.loop_task.ref.extra.outgoing
                return awaited
        self.outgoing = None
        if self.loop_task.step_lock is not None:
            awaited = self.loop_task.step_lock.enter_on_loop(self)
            if awaited is not None:
                self.kept = (value, error)
                return awaited
            try:
                if self.loop_task.recalled:  # by the dispatch that had the lock before
                    return self.end_unbegun()
                return self.step_alone(value, error)
            finally:
                self.loop_task.step_lock.leave_on_loop()
        return self.go_on(value, error)

    cdef object end_unbegun(self):
        """End, and run nothing: the message has gone back, and comes again."""
        self.wait_no_more()
        self.has_ended = True
        return None

    cdef object step_alone(self, object value, object error):
        """Go on as one of several concurrent messages of the actor, while no other code of it runs."""
        cdef LoopTask loop_task = self.loop_task
        cdef ActorRef ref = loop_task.ref
        assert holds(cell_of(ref).in_work == NULL and ref.extra.loop_task is None)
        cell_of(ref).in_work = &loop_task.envelope
        ref.extra.loop_task = loop_task
        if self.is_main:
            loop_task.step_lock.unbegun.pop(loop_task.message, None)
        try:
            return self.go_on(value, error)
        except BaseException:
            if self.is_main:
                hold_for_failure(loop_task.message)
            raise
        finally:
            ref.extra.loop_task = None
            cell_of(ref).in_work = NULL

    cdef object go_on(self, object value, object error):
        cdef ActorContext* context = actor_context()
        cdef Cell* outer = context.current
        if self.loop_task.over:  # a task that the actor left behind no longer acts for it
            return self.resume(value, error)
        context.current = self.loop_task.ref.cell
        if self.is_main and self.loop_task.message is None:
            self.loop_task.ref.note_wait(None)
        try:
            while True:
                context.awaited = NULL
                awaited = self.resume(value, error)
                if self.has_ended or not self.is_main or context.awaited == NULL:
                    return awaited
                if self.loop_task.message is None:
                    error = self.loop_task.ref.note_wait(<Future>context.awaited)
                else:
                    error = None
                if error is None:
                    if (<Future>context.awaited).is_rest:
                        rest_until(<Future>context.awaited, self.loop_task.ref.runtime.team)
                    return awaited
        except (SystemExit, KeyboardInterrupt) as raised:
            raise TaskEnded(f"a task raised {safe_repr(raised)}") from raised
        finally:
            context.current = outer

    cdef object resume(self, object value, object error):
        """Run the coroutine as `run` does, and have others see that, and since when."""
        cdef Extra extra = self.loop_task.ref.extra_now()
        cdef int64_t outer = 0
        if extra is not None:  # else the actor has ended
            outer = extra.step_since
            extra.step_since = monotonic_ns()
        try:
            return self.run(value, error)
        finally:
            if extra is not None:
                extra.step_since = outer

    cdef object run(self, object value, object error):
        """Run the coroutine until it awaits something, which is returned, or ends, which is noted."""
        cdef PyObject* result = NULL
        if error is None:
            self.has_ended = PyIter_Send(<PyObject*>self.coroutine, <PyObject*>value, &result) == PYGEN_RETURN
            return owned(result)
        try:
            return self.coroutine.throw(error)
        except StopIteration as end:
            self.has_ended = True
            return end.value

    cdef int wait_no_more(self) except -1:
        """It goes on, or ends, whatever it has waited for: have those behind it look again."""
        if self.outgoing is not None:
            self.outgoing.let_go_on(self)
            self.outgoing = None
        if self.loop_task.step_lock is not None:
            self.loop_task.step_lock.let_go_on(self)
        return 0

    def close(self):
        """End in the middle."""
        self.wait_no_more()
        self.coroutine.close()

    def __getattr__(self, name):
        """For code that prints a task, or its stack."""
        return getattr(self.coroutine, name)


cdef object owned(PyObject* result):
    """Return what a step in C has left; raise the exception if there is nothing."""
    if result == NULL:
        reraise()
    value = <object>result
    Py_DECREF(value)
    return value


cdef PySendResult am_send(PyObject* task, PyObject* value, PyObject** result) except? PYGEN_ERROR:
    """Go on, as `send`, without an exception for the answer."""
    result[0] = NULL
    answer = (<_TaskCoroutine>task).go_on_or_end(<object>value, None)
    Py_INCREF(answer)
    result[0] = <PyObject*>answer
    return PYGEN_RETURN if (<_TaskCoroutine>task).has_ended else PYGEN_NEXT


set_steps(<PyTypeObject*>_TaskCoroutine, am_send, NULL)
Coroutine.register(_TaskCoroutine)
