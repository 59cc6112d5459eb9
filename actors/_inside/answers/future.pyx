"""The answer to an ask, when it comes."""

import asyncio
import concurrent.futures
import types
from collections import deque

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t
cimport cython

from callboard._inside.answers.thread_locals cimport ActorContext, actor_context
from callboard._inside.answers.waiters cimport (
    AsyncioWake, ThreadWake, Waiter, Wake, driven_by_worker, was_run_for_coroutine,
)
from callboard.core.asserting cimport holds
from callboard.core.clock cimport SIGNAL_CHECK_NS, monotonic_ns
from callboard.core.monitoring.records cimport state_input
from callboard.scheduling.context cimport current_context
from callboard.scheduling.handle cimport Handle, actor_here

from callboard._inside.answers.wait_cause import WaitTarget, WaitCause
from callboard._inside.answers.waiters import wait_in_trio
from callboard.core import checks
from callboard.core.errors import ActorStopped, AskCancelled, AskTimeout, CallboardError
from callboard.core.handles import public_names
from callboard.core.log import log
from callboard.core.threads.blocking import refuse_to_block, running_trio, runs_event_loop


# The errors of futures that were cancelled: callboard's, and those of asyncio and concurrent.futures.
cdef tuple CANCELLATIONS = (AskCancelled, asyncio.CancelledError, concurrent.futures.CancelledError)
# The functions behind map(), recover() and of(). They make futures, so their module is above this one, and registers
# them when it is imported.
cdef object derived = None
cdef object future_of_any = None


def register_combinators(derive, of):
    """Register what `map()` and `recover()` call, and what `of()` does. Once."""
    global derived, future_of_any
    assert holds(derived is None)
    derived, future_of_any = derive, of


INSTEAD = "use `await` in an `async def receive`, or spawn the actor with dedicated=True"


# Trashcan: a future may hold the next by its callback, and so on, and all may go at once.
@cython.trashcan(True)
cdef class Future:
    """The answer to an ask: wait for it, await it, or add a callback.

    Thread-safe. A future completes exactly once, with the answer or with an exception. If `receive` returns a future,
    its outcome becomes the answer: see "Deferred answers" in `docs/actors.md`.
    """

    def __dir__(self):
        return public_names(self)

    def __init__(self, target=None, asker=None):
        self.target = target
        self.asker = asker

    __class_getitem__ = classmethod(types.GenericAlias)

    def done(self):
        """Return whether the future has completed."""
        if not self.flag.is_set():
            return False
        self.seen.set()
        return True

    def result(self, timeout=None):
        """Wait for the answer and return it, or raise what the ask's handler raised.

        The calling thread sleeps, with the interpreter released. Inside an actor use `await`, or spawn the actor with
        `dedicated=True`: other workers must not wait here. In a coroutine of an event loop this raises WouldBlock, even
        if the answer has just come, unless the caller can know that the future is done: from an `await`, from `done()`,
        in a callback, or with `timeout=0`, which does not wait.

        Args:
            timeout: The longest wait in seconds; None waits without limit.

        Raises:
            AskTimeout: There was no answer in time.
            ActorStopped: The answer can never come.
            AskDeadlock: The answer depends on the actor that makes this call.
            WouldBlock: The call would block an event loop.
            CallboardError: The call would block a worker.
            ValueError: `timeout` is not a number from 0 to 1e9.
        """
        self.wait_until_done(timeout)
        return self.take()

    def exception(self, timeout=None):
        """Wait like result(), and return the exception, or None if there was none."""
        self.wait_until_done(timeout)
        return self.error if self.error is None else as_it_came(self)

    def add_done_callback(self, callback):
        """Call `callback(future)` on completion; immediately if it is done, unless this is called in a callback.

        The callback runs in the thread that completes the future, usually a worker: keep it short. An exception in it
        is logged. Callbacks run one after the other, in the order in which they were added. A callback may complete
        another future, or add a callback to one that is done. The thread queues those behind the callbacks that it
        already has to run, so a long chain of futures uses no stack.
        """
        if not callable(callback):
            raise TypeError(f"add_done_callback() expects a callable that takes a future, got {callback!r}")
        if type(callback) is types.FunctionType and callback.__module__ == "asyncio.tasks":
            # It counts in a thread that is not the event loop's, and would leave the loop asleep.
            raise TypeError("asyncio.wait() expects tasks: wrap each future with asyncio.ensure_future(future)")
        if self.attach(callback):
            return
        if isinstance(callback, Wake):
            (<Wake>callback).wake(self)
        else:
            self.call_all(callback)

    def remove_done_callback(self, callback):
        """Remove a pending callback. Return how many times it had been added."""
        return self.remove(callback)

    def cancel(self):
        """Complete the future with AskCancelled. Return False if it was already complete.

        A message that still waits in its mailbox is skipped, and becomes a dead letter, "cancelled". An `async def
        receive` that is handling the message gets `asyncio.CancelledError` at its `await`. Any other handler continues;
        `self.is_wanted()` tells it. A native actor, or an actor in another process, still handles the message.
        """
        cdef Future deferred_to
        with cython.critical_section(self):
            deferred_to = self.deferred_to
        if not self.complete(None, AskCancelled(f"{self._wait_cause or 'it'} was cancelled")):
            return False
        self.seen.set()
        if deferred_to is not None:  # the actor has handled the message
            deferred_to.abandon(self)
        elif isinstance(self.target, Waiter):
            (<Waiter>self.target).withdraw(self)
        return True

    def cancelled(self):
        """Return whether the future was cancelled before it was done."""
        return self.flag.is_set() and isinstance(self.error, CANCELLATIONS)

    def map(self, function):
        """Return a future of `function(answer)`. An error is passed through.

        The function runs like a callback: keep it short. If it raises, the new future fails with that exception. If it
        returns a callboard future, the new future gets its outcome. Cancelling the new future cancels this one, unless
        something else waits for it.
        """
        return derived(self, function, False)

    def recover(self, function):
        """Return a future of this one's answer, or of `function(error)` if it fails. Otherwise like map()."""
        return derived(self, function, True)

    @staticmethod
    def of(value):
        """Return a future for `value`.

        A callboard future is returned as it is. A future of `concurrent.futures` or `asyncio` is followed. Any other
        awaitable becomes a task of the running event loop, and raises CallboardError without one. Any other value is
        itself the answer. Cancelling the new future cancels what it follows.
        """
        return future_of_any(value)

    def set_result(self, value):
        """Complete with an answer. Return False if it was already complete."""
        return self.complete_here(value, None)

    def set_exception(self, error):
        """Complete with an exception. Return False if it was already complete.

        Raises TypeError for anything but an exception instance, and for StopIteration, StopAsyncIteration and
        GeneratorExit, which would end the waiting coroutine or iteration.
        """
        if not isinstance(error, BaseException):
            raise TypeError(f"set_exception() expects an exception, got {error!r}")
        if isinstance(error, (StopIteration, StopAsyncIteration, GeneratorExit)):
            raise TypeError(
                f"set_exception() does not accept {error!r}: an `await` could not distinguish it from a normal end")
        return self.complete_here(None, error)

    def __await__(self):
        if self.flag.is_set():
            self.seen.set()
            return self.take()
        if driven_by_worker():
            yield self  # to the dispatcher, which resumes the actor when this future is done
        elif was_run_for_coroutine(self):
            pass
        elif (trio := running_trio()) is not None:
            yield from wait_in_trio(self, trio).__await__()
        else:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            wake = AsyncioWake(loop, waiter)
            self.add_done_callback(wake)
            actor_context().awaited = <void*>self  # see loop_task.pyx: actors that wait in a circle
            try:
                yield from waiter.__await__()
            finally:
                self.detach(wake)
        self.seen.set()
        return self.take()

    @property
    def _limit(self):
        """After how many seconds a task of trio gives up; None: never."""
        return None

    @property
    def _wait_cause(self):
        """The cause of a wait for it; None: it is ready. Each kind of future has its own."""
        return WaitCause(WaitTarget.ANSWER) if self.target is None else WaitCause(WaitTarget.ANSWER_OF, self.target)

    cdef char blocks_on(self) noexcept:
        """The state of an actor that waits for it, as monitoring has it."""
        return state_input

    cdef void note_block(self) noexcept:
        """An actor ends its dispatch to wait for it, and is monitored."""
        pass

    @property
    def _ends_unwanted(self):
        """Tell whether it is cancelled when nothing waits for it. A promise is not: it belongs to its owner."""
        return self.target is not None

    @property
    def _target(self):
        """The ref that was asked, or None."""
        return self.target

    @property
    def _system(self):
        """The system that brings it about, as far as is known."""
        return getattr(self.target, "system", None)

    def _abandon(self, callback):
        """Wait for it no more, by abandon()."""
        self.abandon(callback)

    def _defer_to(self, Future other):
        """Note that this future's outcome depends on the other's, for the search for circles."""
        with cython.critical_section(self):
            if not self.flag.is_set():
                self.deferred_to = other

    def __repr__(self):
        state = "waiting"
        if self.flag.is_set():
            state = "done" if self.error is None else "cancelled" if self.cancelled() else "failed"
        return f"<Future {state}, asked {self.target!r}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a callboard future cannot be pickled: send its result() instead")

    cdef bint complete(self, object value, object error):
        cdef object callbacks, _deferred_to
        assert holds(error is None or isinstance(error, BaseException))
        if error is not None and value is None:
            value = error.__traceback__
        with cython.critical_section(self):
            if self.flag.is_set():
                return False
            self.value = value
            self.error = error
            callbacks = self.callbacks
            self.callbacks = None
            _deferred_to = self.deferred_to  # let go at the end, not in here
            self.deferred_to = None
            timer = self._timer
            self._timer = None
            self.flag.set()
        if timer is not None:
            timer.cancel()
        if callbacks is not None:
            if isinstance(callbacks, Wake):
                (<Wake>callbacks).wake(self)
            elif isinstance(callbacks, Waiter):
                (<Waiter>callbacks).resume(self)
            else:
                self.call_all(callbacks)
        return True

    cdef bint complete_here(self, object value, object error):
        """complete(), for one of the future's users. A coroutine that has done so knows that it is done."""
        cdef bint is_first = self.complete(value, error)
        if is_first and runs_event_loop():
            self.seen.set()
        return is_first

    def _take_timer(self, timer):
        """Have a timer cancelled when it is done; False, and nothing will be, if it is done."""
        with cython.critical_section(self):
            if self.flag.is_set():
                return False
            self._timer = timer
        return True

    cdef bint attach(self, object callback):
        """Add to what is called back; False if the future is done."""
        with cython.critical_section(self):
            if self.flag.is_set():
                return False
            if self.callbacks is None:
                self.callbacks = callback
            elif type(self.callbacks) is list:
                (<list>self.callbacks).append(callback)
            else:
                self.callbacks = [self.callbacks, callback]
        return True

    cdef void detach(self, object callback) noexcept:
        """Forget what was attached, if it still waits. Nothing is cancelled because of that."""
        with cython.critical_section(self):
            if self.callbacks is callback:
                self.callbacks = None
            elif type(self.callbacks) is list:
                # By identity: a callback of the user's may compare as it likes.
                self.callbacks = [other for other in <list>self.callbacks if other is not callback] or None

    cdef Py_ssize_t remove(self, object callback) except -1:
        """Forget what compares as equal, such as a method that was bound anew. Return how many."""
        cdef Py_ssize_t count = 0
        with cython.critical_section(self):
            others = self.callbacks
        for other in [] if others is None else list(others) if type(others) is list else [others]:
            if other is callback or other == callback:
                self.detach(other)
                count += 1
        return count

    cdef bint was_withdrawn(self) noexcept:
        """Tell whether its asker has cancelled it."""
        return self.flag.is_set() and isinstance(self.error, AskCancelled)

    cdef void abandon(self, object callback) noexcept:
        """Stop waiting for it. If nobody else waits, and it has no other purpose, it is cancelled."""
        self.detach(callback)
        try:
            if self.callbacks is None and not self.flag.is_set() and self._ends_unwanted:
                self.cancel()
        except BaseException as error:
            log.error("a future could not be cancelled", future=self, exc_info=error)

    cdef void call_all(self, object callbacks) noexcept:
        """Call back. Within a callback, leave that to its caller."""
        cdef ActorContext* context = actor_context()
        cdef void* outer = context.completing
        cdef uint32_t outer_at = context.completing_at
        assert holds(outer == NULL or outer_at <= context.depth)
        if is_completing(context):
            (<object>outer).append((self, callbacks))
            return
        pending = deque()
        context.completing = <void*>pending
        context.completing_at = context.depth
        self.call_each(callbacks)
        call_pending()
        assert holds(not pending)
        context.completing = outer
        context.completing_at = outer_at

    cdef void call_each(self, object callbacks) noexcept:
        assert holds(self.flag.is_set())
        if type(callbacks) is list:
            for callback in <list>callbacks:
                self.call_back(callback)
        else:
            self.call_back(callbacks)

    cdef void call_back(self, object callback) noexcept:
        # Its failure concerns neither the thread that completes the future, nor the others that wait for it.
        if isinstance(callback, Future):
            (<Future>callback).complete(self.value, self.error)
        elif isinstance(callback, Wake):
            (<Wake>callback).wake(self)
        elif isinstance(callback, Waiter):
            (<Waiter>callback).resume(self)
        else:
            self.seen.set()
            try:
                callback(self)
            except BaseException as error:
                log.error("a future's callback failed", callback=callback, exc_info=error)

    cdef object take(self):
        assert holds(self.flag.is_set())
        if self.error is not None:
            raise as_it_came(self)
        return self.value

    def _wait(self, timeout=None):
        """Sleep until complete. Raises AskTimeout after `timeout` seconds, which were checked."""
        cdef int64_t begin = monotonic_ns()
        cdef int64_t limit = -1 if timeout is None else <int64_t>(timeout * 1e9)
        cdef int64_t left
        cdef ThreadWake sleeper
        cdef Handle here = actor_here()
        context = current_context()
        if (context.worker != NULL or here is not None) and not (here is not None and here.has_own_worker()):
            where = "a worker" if context.worker != NULL else "the event loop"
            advice = getattr(getattr(here, "actor_class", None), "_instead_of_waiting", INSTEAD)
            raise CallboardError(f"result() would block {where}: {advice}")
        if here is None and actor_context().on_event_loop:
            raise CallboardError("result() would block the event loop: use `await`")
        if self._was_run_here(timeout):
            return
        if limit != 0 and runs_event_loop():  # the words for an error cost more than the wait
            refuse_to_block(f"a wait for {self._wait_cause}", "`await` it")
        with nogil:
            self.flag.spin(context.spinner)
        if self.flag.is_set():
            return
        sleeper = ThreadWake.__new__(ThreadWake)
        self.add_done_callback(sleeper)
        try:
            while not self.flag.is_set():
                left = SIGNAL_CHECK_NS
                if limit >= 0:
                    left = min(left, limit - (monotonic_ns() - begin))
                    if left <= 0:
                        raise AskTimeout(f"{self._no_answer()} after {timeout} s")
                with nogil:
                    sleeper.parker.park_for(left)
                PyErr_CheckSignals()
        finally:
            if not self.flag.is_set():
                self.detach(sleeper)

    cdef int wait_until_done(self, object timeout) except -1:
        cdef Handle here
        if timeout is not None:
            checks.seconds("the timeout of result()", timeout)
        if not self.flag.is_set():
            call_pending()
        # An answer that has come by chance must not make the call pass in a coroutine, which may wait another time.
        if self.flag.is_set() and (self.seen.is_set() or timeout == 0 or not runs_event_loop()):
            return 0
        here = actor_here()
        if here is not None and here.has_own_worker():
            (<Waiter>here).wait_for(self, timeout)
        else:
            self._wait(timeout)
        self.seen.set()
        return 0

    def _no_answer(self):
        """Begin the sentence of an AskTimeout."""
        return "no answer" if self.target is None else f"no answer from {self.target!r}"

    def _was_run_here(self, timeout):
        """On the thread that runs the asked actor's manual system: run that until complete."""
        system = self._system
        if system is None and getattr(self.target, "_is_abandoned", False):
            self.complete(None, ActorStopped(f"{self.target._short_path}: its manual system was dropped"))
            return True
        if system is None or not system._is_run_here:
            return False
        if not system._run_until(self.done, timeout):
            within = "" if timeout is None else f" in {timeout} s of its clock"
            raise AskTimeout(f"{self._no_answer()}{within}, and its system is idle")
        return True


cdef inline bint is_completing(ActorContext* context) noexcept:
    """Tell whether the thread is in a callback. One of a dispatch further down the stack does not count: what
    waits for the dispatch in work must not wait for that."""
    return context.completing != NULL and context.completing_at == context.depth


cdef void call_pending() noexcept:
    """Call what this thread has to call back, if it is in the middle of that.

    A caller in a callback is about to wait, perhaps for the work of another callback.
    """
    cdef ActorContext* context = actor_context()
    if not is_completing(context):
        return
    pending = <object>context.completing
    while pending:
        future, callbacks = pending.popleft()
        (<Future>future).call_each(callbacks)


cdef object as_it_came(Future future):
    """Return the exception, without the frames that were added when it was raised before."""
    return BaseException.with_traceback(future.error, future.value)
