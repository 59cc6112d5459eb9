"""A wait at a channel: for a value, or for room."""

import asyncio
import time

from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.runtime cimport Runtime
from callboard.channels.end cimport ChannelEnd
from callboard.channels.pipe cimport Line
from callboard.core.asserting cimport holds
from callboard.core.monitoring.records cimport state_any, state_input, state_output
from callboard.scheduling.handle cimport Handle, actor_here

from callboard.core.errors import AskTimeout, CallboardError
from callboard.core.threads.blocking import running_trio


cdef class ChannelWait(Future):
    """Done when the other side has done something: the user of the end looks again then.

    The side's line holds it. A wait that is given up leaves the line, and takes nothing along.
    """

    @property
    def _what(self):
        if not isinstance(self.end, ChannelEnd):
            return f"one of {len(self.end)} ends"
        return f"{'room in' if self.line.sends else 'a value of'} channel {(<ChannelEnd>self.end).pipe.number}"

    @property
    def _limit(self):
        return self.limit

    def _was_run_here(self, timeout):
        """On the thread that runs the channel's manual system: run that until the wait is over."""
        cdef Runtime runtime = (<ChannelEnd>self.end).pipe.runtime if isinstance(self.end, ChannelEnd) else None
        system = None if runtime is None or not runtime.manual else runtime.system
        if system is None or not system.is_run_here:
            return False
        if not system._run_until(self.done, timeout):
            if timeout is None:
                raise CallboardError(f"{self.end!r} waits for {self._what}, and its system is idle")
            raise AskTimeout
        return True

    cdef char blocks_on(self) noexcept:
        if not isinstance(self.end, ChannelEnd):
            return state_any
        return state_output if self.line.sends else state_input

    cdef void note_block(self) noexcept:
        cdef ChannelEnd end
        if isinstance(self.end, ChannelEnd):
            end = <ChannelEnd>self.end
            if end.accounted:
                end.activity.note_blocked()

    cdef int expire_after(self, double seconds) except -1:
        """Fail with AskTimeout when `seconds` have passed, unless the wait is over by then.

        An actor waits by its system's clock, a coroutine of an event loop by the loop's, and so does a task of trio.
        """
        cdef Handle here = actor_here()
        assert holds(not self.expires)
        self.expires = True
        if here is not None:
            timers = (<ActorRef>here).runtime.timers
            timers.note(self, timers.due_after(seconds), seconds)
        elif running_trio() is not None:
            self.limit = seconds
        else:
            self._take_timer(asyncio.get_running_loop().call_later(seconds, self.set_exception, AskTimeout()))
        return 0

    cdef void leave(self) noexcept:
        """Give up."""
        self.line.leave(self)
        self.complete(None, None)  # which cancels its timer


cdef double now() except -1:
    """The time for the limits of who calls: by the clock of an actor's system, or by the process's."""
    cdef Handle here = actor_here()
    return time.monotonic() if here is None else (<ActorRef>here).runtime.timers.now()


cdef ChannelWait begin_wait(object end, Line line):
    """Join `line`. None: there is something to do already."""
    cdef ChannelWait wait = ChannelWait.__new__(ChannelWait)
    wait.end = end
    wait.line = line
    wait.is_rest = line.is_input()
    return wait if line.join(wait) else None
