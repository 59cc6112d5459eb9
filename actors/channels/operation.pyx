"""Operations that may wait: tried at once, and retried whenever the other side has acted."""

import asyncio

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from callboard._inside.answers.waiters cimport driven_by_worker
from callboard.channels.end cimport ChannelEnd
from callboard.channels.pipe cimport Line
from callboard.channels.wait cimport ChannelWait, begin_wait, note_full, now
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport (
    PYGEN_ERROR, PYGEN_NEXT, PYGEN_RETURN, PyIter_Send, PySendResult, reraise, set_steps,
)
from callboard.scheduling.context cimport current_context
from callboard.scheduling.handle cimport Handle, actor_here

from callboard.core.handles import public_names
from callboard.channels.errors import ChannelTimeout
from callboard.core.errors import AskTimeout, CallboardError
from callboard.core.threads.blocking import running_trio


@cython.freelist(64)
cdef class Operation:
    """The awaitable of `send()`, `receive()` and `select()`. Await it once.

    Nothing happens before. If it is cancelled while it waits, it takes nothing and sends nothing. A cancellation that
    comes after a value has passed is for the next `await` of the task.
    """

    def __dir__(self):
        return public_names(self)

    def __await__(self):
        if not self.awaited.try_begin():
            raise RuntimeError(f"{self!r} was already awaited")
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Take the next step, as a coroutine does."""
        cdef PyObject* result = NULL
        status = self.step(<PyObject*>value, &result)
        given = <object>result
        Py_DECREF(given)
        if status == PYGEN_RETURN:
            raise StopIteration(given)
        return given

    def throw(self, kind, error=None, traceback=None):
        """Give up, because `error` is raised at the `await`."""
        if self.hosted is not None:
            try:
                return self.hosted.throw(kind if error is None else error)
            except StopIteration:
                pass  # it had ended
            except BaseException as raised:
                self.go_on(raised)
        else:
            self.go_on(kind if error is None else error)
        return self.send(None)

    def close(self):
        """Give up, because the coroutine that awaits it ends."""
        if self.hosted is not None:
            self.hosted.close()
        if self.waiting is not None:
            self.waiting.leave()
            self.waiting = self.hosted = None
            self.is_done_after_all()

    def __repr__(self):
        return f"<{type(self).__name__}{' that is over' if self.is_over else f' at {self.end!r}'}>"

    cdef PySendResult step(self, PyObject* value, PyObject** result) except PYGEN_ERROR:
        cdef ChannelWait wait
        result[0] = NULL
        self.awaited.try_begin()  # asyncio steps objects with send(), throw() and close() without __await__()
        while self.waiting is None or self.comes_back(value, result):
            value = <PyObject*>None  # to steps that begin
            if self.is_over or self.attempt(result):
                self.finish()
                if result[0] == NULL:
                    Py_INCREF(None)
                    result[0] = <PyObject*>None
                return PYGEN_RETURN
            wait = begin_wait(self.end, self.line())
            if wait is None:
                continue
            assert holds(self.waiting is None and self.hosted is None)
            self.waiting = wait
            if self.timeout is not None:
                try:
                    wait.expire_after(self.left())
                except BaseException as error:  # no event loop runs, for one
                    self.go_on(error)
            elif wait.line.sends:
                note_full(wait)
            if driven_by_worker():
                Py_INCREF(wait)
                result[0] = <PyObject*>wait
                return PYGEN_NEXT
            self.hosted = wait.__await__()
        return PYGEN_NEXT

    cdef bint comes_back(self, PyObject* value, PyObject** result) except -1:
        """Whether the wait is over, and the operation tries again. False: its event loop has a further step to take."""
        cdef PySendResult status
        cdef ChannelWait wait
        cdef PyObject* ended
        if self.hosted is not None:
            status = PyIter_Send(<PyObject*>self.hosted, value, result)
            if status == PYGEN_NEXT:
                return False
            self.hosted = None
            ended = result[0]
            result[0] = NULL  # asyncio takes a result for success
            if status == PYGEN_ERROR:
                self.go_on(current_error())
            else:
                Py_DECREF(<object>ended)
        if self.waiting is not None:
            wait, self.waiting = self.waiting, None
            if wait.error is not None:
                self.waiting = wait
                self.go_on(wait.error)
        return True

    cdef void finish(self) noexcept:
        """End: release everything."""
        self.is_over = True
        self.end = None
        if self.timeout is not None:
            self.timeout = None
        self.spare.keep(<PyObject*>self)

    cdef int go_on(self, object error) except -1:
        """Raise `error`, with nothing taken or sent, unless the operation was done and the error can come later."""
        cdef bint is_done
        wait, self.waiting, self.hosted = self.waiting, None, None
        if wait is not None:
            (<ChannelWait>wait).leave()
        assert holds(not self.is_over)
        is_done = self.is_done_after_all()
        if isinstance(error, AskTimeout):
            if not is_done:
                raise ChannelTimeout(f"{self!r}: timed out after {self.timeout} s") from None
        elif not is_done or not is_put_off(error):
            raise error
        self.is_over = True
        return 0

    cdef double left(self) except -1:
        """The rest of the time limit, in seconds."""
        if self.due == 0:
            self.due = now() + self.timeout
        return max(self.due - now(), 0.0)

    cdef Line line(self):
        """The queue to wait in."""
        return (<ChannelEnd>self.end).side()

    cdef bint attempt(self, PyObject** outcome) except -1:
        """Do it, if that is possible without a wait. The outcome is None if `outcome` stays null."""
        raise NotImplementedError

    cdef bint is_done_after_all(self) except -1:
        """Take back an offer. True: a receiver has taken it."""
        return False

    cdef object block(self, str name, str awaitable):
        """Do it, and block the calling thread until it is done."""
        cdef ChannelWait wait
        cdef PyObject* result = NULL
        cdef Handle here = actor_here()
        self.awaited.try_begin()
        if (current_context().worker != NULL or here is not None) and not (
                here is not None and here.has_own_worker()):
            raise CallboardError(
                f"{name}() would block a worker or its event loop: use `await {awaitable}()`, "
                "or spawn the actor with dedicated=True")
        while not self.is_over and not self.attempt(&result):
            wait = begin_wait(self.end, self.line())
            if wait is None:
                continue
            self.waiting = wait
            wait.expires = self.timeout is not None
            if wait.line.sends and not wait.expires:
                note_full(wait)
            try:
                wait.result(None if self.timeout is None else self.left())
            except BaseException as error:
                self.go_on(error)
            self.waiting = None
        self.finish()
        if result == NULL:
            return None
        outcome = <object>result
        Py_DECREF(outcome)
        return outcome


cdef bint is_put_off(object error) except -1:
    """Have the task cancelled at its next `await` instead. False: `error` does not cancel a task."""
    trio = running_trio()
    if trio is not None:
        return isinstance(error, trio.Cancelled)  # which its scope raises at each checkpoint
    if not isinstance(error, asyncio.CancelledError) or asyncio._get_running_loop() is None:
        return False
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return False
    task.get_loop().call_soon(_cancel_again, task, error.args)
    return True


def _cancel_again(task, args):
    """Cancel a task, unless it has ended or left the cancelled scope. The cancellation counts once."""
    if not task.done() and task.cancelling():
        task.uncancel()
        task.cancel(*args)


cdef object current_error():
    """Fetch the current exception."""
    try:
        reraise()
    except BaseException as error:
        return error


cdef PySendResult am_send(PyObject* self, PyObject* value, PyObject** result) except? PYGEN_ERROR:
    return (<Operation>self).step(value, result)


cdef PyObject* iternext(PyObject* self) except? NULL:
    cdef PyObject* result = NULL
    if (<Operation>self).step(<PyObject*>None, &result) == PYGEN_NEXT:
        return result
    outcome = <object>result
    Py_DECREF(outcome)
    if outcome is not None:  # without an exception, None is returned
        raise StopIteration(outcome)
    return NULL


cdef int make_awaitable(type operation) except -1:
    """Let `await` step a kind of operation without exceptions."""
    set_steps(<PyTypeObject*>operation, am_send, iternext)
    return 0


make_awaitable(Operation)
