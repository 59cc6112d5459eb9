"""The answer to an ask, when it comes."""

import asyncio
import types

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
cimport cython

from callboard.core.node cimport Parker, monotonic_ns
from callboard.scheduling.context cimport current_context
from callboard.scheduling.cell cimport Cell, dedicated_cell

from callboard.core.errors import ActorStopped, AskTimeout, CallboardError
from callboard.core.log import log

# The longest sleep of a waiting thread before it looks for signals (Ctrl-C).
cdef int64_t SLICE_NS = 50_000_000


cdef class _Sleeper:
    """Wakes one sleeping thread."""

    cdef Parker parker

    def __call__(self, future):
        self.parker.unpark()


cdef class Future:
    """The answer to an ask: wait for it, await it, or be called back.

    Safe in every thread. Complete exactly once: with the answer, or with an exception.
    """

    def __init__(self, target=None, asker=None):
        self.target = target
        self.asker = asker

    __class_getitem__ = classmethod(types.GenericAlias)

    def done(self):
        """Tell whether the answer or an exception is there."""
        return self.flag.is_set()

    def result(self, timeout=None):
        """Wait for the answer and return it, or raise what the ask's handler raised.

        `timeout` is in seconds; None waits for ever. The calling thread sleeps, with the interpreter
        released, so a worker's thread must not call this for an answer that is not there yet: inside
        an actor use `await`, or spawn the actor with `dedicated=True`.

        Raises AskTimeout, ActorStopped if the answer can never come, and CallboardError on a worker.
        """
        if not self.flag.is_set():
            self.wait(timeout)
        return self.take()

    def exception(self, timeout=None):
        """Wait like result(), and return the exception, or None if there is an answer."""
        if not self.flag.is_set():
            self.wait(timeout)
        return self.error

    def add_done_callback(self, callback):
        """Call `callback(future)` when the answer is there, at once if it is.

        It runs in the thread that completes the future, usually a worker: keep it short. If it
        raises, that is logged.
        """
        cdef bint now
        with cython.critical_section(self):
            now = self.flag.is_set()
            if not now:
                if self.callbacks is None:
                    self.callbacks = callback
                elif type(self.callbacks) is list:
                    (<list>self.callbacks).append(callback)
                else:
                    self.callbacks = [self.callbacks, callback]
        if now:
            self.call_back(callback)

    def set_result(self, value):
        """Complete with an answer. False if it was complete already."""
        return self.complete(value, None)

    def set_exception(self, error):
        """Complete with an exception. False if it was complete already."""
        return self.complete(None, error)

    def __await__(self):
        if self.flag.is_set():
            return self.take()
        if driven_by_worker():
            yield self  # to the dispatcher, which resumes the actor when this future is done
        else:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            self.add_done_callback(_Relay(loop, waiter))
            yield from waiter.__await__()
        return self.take()

    def __repr__(self):
        state = "waiting" if not self.flag.is_set() else "failed" if self.error else "done"
        return f"<Future {state}, asked {self.target!r}>"

    def __reduce__(self):
        raise TypeError("a callboard future cannot be pickled: send its result() instead")

    cdef bint complete(self, object value, object error):
        cdef object callbacks
        with cython.critical_section(self):
            if self.flag.is_set():
                return False
            self.value = value
            self.error = error
            callbacks = self.callbacks
            self.callbacks = None
            timer = self._timer
            self._timer = None
            self.flag.set()
        if timer is not None:
            timer.cancel()
        if callbacks is not None:
            if type(callbacks) is list:
                for callback in callbacks:
                    self.call_back(callback)
            else:
                self.call_back(callbacks)
        return True

    cdef void call_back(self, object callback) noexcept:
        # Its failure is neither that of who completes the future, nor that of who else waits for it.
        try:
            callback(self)
        except BaseException as error:
            log.error("a future's callback failed", callback=callback, exc_info=error)

    cdef object take(self):
        if self.error is not None:
            raise self.error
        return self.value

    def wait(self, timeout=None):
        """Sleep until complete. Raises AskTimeout after `timeout` seconds."""
        cdef int64_t begin = monotonic_ns()
        cdef int64_t limit = -1
        cdef int64_t left
        cdef _Sleeper sleeper
        if timeout is not None:
            # A deadline that has passed is one that passes at once; the upper clamp is for 64 bits.
            limit = <int64_t>(min(max(timeout, 0.0), 9e9) * 1e9)
        context = current_context()
        if context.worker != NULL and not (
            context.current != NULL and context.current.has(dedicated_cell)
        ):
            raise CallboardError(
                "result() would block a worker: use `await` in an `async def receive`, "
                "or spawn the actor with dedicated=True"
            )
        with nogil:
            self.flag.spin(context.spinner)
        if self.flag.is_set() or self.was_run_here(timeout):
            return
        sleeper = _Sleeper.__new__(_Sleeper)
        self.add_done_callback(sleeper)
        while not self.flag.is_set():
            left = SLICE_NS
            if limit >= 0:
                left = min(left, limit - (monotonic_ns() - begin))
                if left <= 0:
                    raise AskTimeout(f"no answer from {self.target!r} after {timeout} s")
            with nogil:
                sleeper.parker.park_for(left)
            PyErr_CheckSignals()

    def was_run_here(self, timeout):
        """On the thread that runs the asked actor's manual system: run that until complete."""
        system = getattr(self.target, "system", None)
        if not getattr(system, "is_run_here", False):
            return False
        if not system._run_until(self.done, timeout):
            within = "" if timeout is None else f" in {timeout} s of its clock"
            raise AskTimeout(f"no answer from {self.target!r}{within}, and its system is at rest")
        return True


cdef bint driven_by_worker() except -1:
    """Tell whether who awaits is an `async def receive`, and not a coroutine of an event loop."""
    cdef Cell* current = current_context().current
    if current == NULL:
        return False
    # An actor that has a thread of its own may run an event loop in it.
    return not current.has(dedicated_cell) or asyncio._get_running_loop() is None


cdef class _Relay:
    """Completes an asyncio future from whatever thread completes ours."""

    cdef object loop
    cdef object waiter

    def __init__(self, loop, waiter):
        self.loop = loop
        self.waiter = waiter

    def __call__(self, future):
        try:
            self.loop.call_soon_threadsafe(self.finish)
        except RuntimeError:
            pass  # the loop was closed; nobody waits any more

    def finish(self):
        if not self.waiter.done():
            self.waiter.set_result(None)
