"""Everything that waits for futures: actors, threads, and tasks of asyncio and trio.

Futures are above this module, so here they are plain objects.
"""

from callboard._inside.answers.thread_locals cimport actor_context
from callboard.scheduling.context cimport current_context
from callboard.scheduling.handle cimport actor_here

from callboard.core.errors import AskTimeout
from callboard.core.threads.blocking import runs_event_loop


cdef class Waiter(Handle):
    """An actor, as seen by the futures that it waits for. Every ref is one."""

    cdef object awaited(self):
        """Return the future that the actor waits for in the middle of a message, or None."""
        raise NotImplementedError

    cdef int wait_for(self, object future, object timeout) except -1:
        """Let the actor, which is dedicated, sleep until `future` is done.

        Raises AskDeadlock, AskTimeout.
        """
        raise NotImplementedError

    cdef void withdraw(self, object future) noexcept:
        """The asker has cancelled an ask of this actor, which is thereby done. In any thread."""
        pass

    cdef void note_full(self, object to) noexcept:
        """On a worker's thread: note whose mailbox it waits at for room, while others run; None: it waits no more."""
        pass

    cdef void resume(self, object future) noexcept:
        """The future is done that the actor waits for in the middle of a message. As a callback, in any thread."""
        pass


cdef class Wake:
    """A callback of the runtime's own."""

    def __call__(self, future):
        self.wake(future)

    cdef void wake(self, object future) noexcept:
        pass


cdef class ThreadWake(Wake):
    """Wakes one sleeping thread."""

    cdef void wake(self, object future) noexcept:
        self.parker.unpark()


cdef class AsyncioWake(Wake):
    """Completes a future of asyncio, in whatever thread completes the other future."""

    def __init__(self, loop, waiter):
        self.loop = loop
        self.waiter = waiter

    cdef void wake(self, object future) noexcept:
        try:
            self.loop.call_soon_threadsafe(self.finish)
        except RuntimeError:
            pass  # the loop was closed; no task waits any more

    def finish(self):
        if not self.waiter.done():
            self.waiter.set_result(None)


cdef class TrioWake(Wake):
    """Wakes a task of trio, from whatever thread completes our future."""

    def __init__(self, trio):
        self.trio = trio
        self.task = trio.lowlevel.current_task()
        self.token = trio.lowlevel.current_trio_token()

    cdef void wake(self, object future) noexcept:
        try:
            self.token.run_sync_soon(self.finish)
        except RuntimeError:
            pass  # trio's run has ended; no task waits any more

    def finish(self):
        if not self.is_over:
            self.is_over = True
            self.trio.lowlevel.reschedule(self.task)

    def abort(self, _raise_cancelled):
        self.is_over = True
        return self.trio.lowlevel.Abort.SUCCEEDED


async def wait_in_trio(future, trio):
    """Let a task of trio wait until `future` is done, or fail it with AskTimeout after its limit."""
    wake = TrioWake(trio)
    limit = future._limit
    future.add_done_callback(wake)
    try:
        if limit is None:
            await trio.lowlevel.wait_task_rescheduled(wake.abort)
        else:
            with trio.move_on_after(limit) as scope:
                await trio.lowlevel.wait_task_rescheduled(wake.abort)
            if scope.cancelled_caught:
                future.set_exception(AskTimeout())
    finally:
        future.remove_done_callback(wake)


cdef bint driven_by_worker() except -1:
    """Tell whether an `async def receive` awaits here, and not a coroutine of an event loop."""
    cdef Handle here = actor_here()
    if here is None or current_context().worker == NULL:  # the thread of the event loop is not a worker's
        return False
    # A dedicated actor may run an event loop in its thread.
    return not here.has_own_worker() or not runs_event_loop()


cdef bint was_run_for_coroutine(object future) except -1:
    """In a coroutine of the user's, on the thread that runs a manual system: run that until complete, or idle.

    If it is idle, some other task of the event loop may go on."""
    if actor_here() is not None or actor_context().on_event_loop:
        return False
    system = future._system
    if system is None or not system._is_run_here:
        return False
    system._run_until(future.done, None)
    return future.done()
