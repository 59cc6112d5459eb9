"""Waits at a channel, for a value or for room, and the search for circles of them, which would never end.

The edges of the graph are waits. A wait for room leads to the one actor that has the channel's only receiver, and a
wait for a value to the one that has the only sender. A wait for an answer leads to the actor that was asked, if that is
in the middle of a message, or to the answer that it is deferred to. Nothing else is an edge: a wait with a time limit
ends by itself, and a selection, a thread or an event loop may go on in another way. So each actor waits for one other
at most, and following the edges finds a circle. One without a full channel is no error: its tasks wait for input.

Moving a value never searches for circles. An actor that begins to wait for room notes the channel's side once, and a
timer searches from then on, while there are waits there.

A wait that is not done in the second pass was not done in the first one either, and is the same object: so there was a
moment at which all of the circle's actors were suspended. Each can be resumed by the next one alone, so they stay so.
(A stop or a cancellation completes the wait first, or finds it completed.)

On artificial deadlocks see Prokesch 2011, section 3.1.1; on channels that grow Parks 1995, "Bounded Scheduling of
Process Networks".
"""

import asyncio
import time

cimport cython

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.runtime cimport Runtime
from callboard.channels.end cimport ChannelEnd
from callboard.channels.pipe cimport ChannelSide, Line, Pipe
from callboard.core.asserting cimport holds
from callboard.core.monitoring.records cimport state_any, state_input, state_output
from callboard.scheduling.handle cimport Handle, actor_here

from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.channels.errors import ChannelDeadlock
from callboard.core.errors import AskTimeout, CallboardError
from callboard.core.threads.blocking import running_trio

# The time from the beginning of a wait to the first search, and the longest time between two searches, in seconds.
cdef double FIRST_LOOK = 0.05
cdef double LONGEST_PAUSE = 0.5
# The number of waits of a circle that an error names from its beginning, and from its end.
cdef int SHOWN = 10


cdef class ChannelWait(Future):
    """Complete when the other side has acted. The user of the end then tries again.

    The side's queue has it. A wait that is given up leaves the queue, and takes no value with it.
    """

    @property
    def _wait_cause(self):
        if not isinstance(self.end, ChannelEnd):
            return WaitCause(WaitTarget.CHANNEL_ENDS, len(self.end))
        awaited = WaitTarget.CHANNEL_ROOM if self.line.sends else WaitTarget.CHANNEL_VALUE
        return WaitCause(awaited, (<ChannelEnd>self.end).pipe.number)

    @property
    def _limit(self):
        return self.limit

    def _was_run_here(self, timeout):
        """Run the channel's manual system until the wait is over, if this thread runs that system."""
        cdef Runtime runtime = (<ChannelEnd>self.end).pipe.runtime if isinstance(self.end, ChannelEnd) else None
        system = None if runtime is None or not runtime.manual else runtime.system
        if system is None or not system._is_run_here:
            return False
        if not system._run_until(self.done, timeout):
            if timeout is None:
                raise CallboardError(f"{self.end!r} waits for {self._wait_cause}, and its system is idle")
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

        An actor waits by its system's clock; a coroutine, or a task of trio, by its event loop's.
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
        self.complete(None, None)  # cancels its timer


cdef double now() except -1:
    """The time for the caller's limits: by the clock of an actor's system, or by the process's."""
    cdef Handle here = actor_here()
    return time.monotonic() if here is None else (<ActorRef>here).runtime.timers.now()


cdef ChannelWait begin_wait(object end, Line line):
    """Begin to wait in `line`. None: there is something to do already."""
    cdef ChannelWait wait = ChannelWait.__new__(ChannelWait)
    wait.end = end
    wait.line = line
    wait.is_rest = line.is_input()
    return wait if line.join(wait) else None


# --- circles ---------------------------------------------------------------------------------------------------------


cdef int note_full(ChannelWait wait) except -1:
    """Have circles searched for: an actor begins to wait for room."""
    cdef ChannelSide side = <ChannelSide>wait.line
    cdef ActorRef ref = (<ChannelEnd>wait.end).owner
    cdef Runtime runtime
    cdef DeadlockDetector watch
    if side.is_noted or ref is None:
        return 0
    runtime = ref.runtime
    with cython.critical_section(runtime):
        if runtime.circles is None:
            watch = DeadlockDetector.__new__(DeadlockDetector)
            watch.timers = runtime.timers
            watch.manual = runtime.manual
            runtime.circles = watch
        else:
            watch = <DeadlockDetector>runtime.circles
    watch.note(side)
    return 0


cdef class DeadlockDetector:
    """Searches for the circles of one system."""

    def __cinit__(self):
        self.sides = []

    cdef bint add(self, ChannelSide side) noexcept:
        """Add `side` to the list. False: it is there already."""
        with cython.critical_section(side):
            if side.is_noted:
                return False
            side.is_noted = True
        with cython.critical_section(self):
            self.sides.append(side)
        return True

    cdef void note(self, ChannelSide side) noexcept:
        """Search from `side` from now on, while there are waits there."""
        cdef bint is_first
        if not self.add(side):
            return
        with cython.critical_section(self):
            is_first = not self.is_due and not self.manual
            if is_first:
                self.is_due = True
                self.pause = FIRST_LOOK
        if is_first:
            self.timers.call_after(FIRST_LOOK, self.look_again)

    def look_again(self):
        """Search, on the timers' thread, and again later if there are waits for room."""
        cdef bint again
        try:
            self.look()
        finally:
            with cython.critical_section(self):
                again = self.is_due = bool(self.sides)
                self.pause = min(2 * self.pause, LONGEST_PAUSE)
            if again:
                self.timers.call_after(self.pause, self.look_again)

    def look(self):
        """Break up all circles. Return whether there was one."""
        cdef ChannelWait wait
        cdef set seen = set()
        cdef bint found = False
        for wait in self.still_full():
            circle = circle_from(wait, seen)
            if circle is not None and is_closed(<list>circle):
                break_up(<list>circle)
                found = True
        return found

    cdef list still_full(self):
        """Return the waits for room, and forget the sides without waits."""
        cdef ChannelSide side
        cdef list waits = []
        cdef list sides
        with cython.critical_section(self):
            sides, self.sides = self.sides, []
        for side in sides:
            assert holds(side.is_noted)
            with cython.critical_section(side):
                side.is_noted = False
                line = side.waits()
            if line:  # a later wait notes the side itself
                self.add(side)  # the caller schedules the next search
            waits += [wait for wait in line if isinstance(wait, ChannelWait)]
        return waits


cdef bint may_end_by_itself(Future wait) except -1:
    """Whether a wait is over, or has a time limit."""
    cdef bint is_timed
    if isinstance(wait, ChannelWait):
        return wait.flag.is_set() or (<ChannelWait>wait).expires
    with cython.critical_section(wait):
        is_timed = wait._timer is not None
    return wait.flag.is_set() or is_timed


cdef ActorRef waited_for(Future wait):
    """Return the one actor that can end the wait. None: others can, or a timer."""
    cdef ChannelSide other
    cdef ActorRef found = None
    if may_end_by_itself(wait):
        return None
    if not isinstance(wait, ChannelWait):
        return <ActorRef>wait.target if isinstance(wait.target, ActorRef) else None
    if not isinstance((<ChannelWait>wait).end, ChannelEnd):
        return None
    pipe = (<ChannelEnd>(<ChannelWait>wait).end).pipe
    other = pipe.receivers if (<ChannelWait>wait).line.sends else pipe.senders
    with cython.critical_section(other):
        if other.ends == 1 and len(other.users) == 1:
            found = <ActorRef>other.users[0]
    return found


cdef Future wait_of(ActorRef ref):
    """Return the wait of an actor that is suspended in its only message, or None."""
    cdef object awaited = None if ref is None else ref.awaited()
    if awaited is None or ref.recipe.event_loop:  # its other coroutines may go on
        return None
    if ref.has_own_worker() and not isinstance(awaited, ChannelWait):  # result() may have a time limit
        return None
    return <Future>awaited


cdef Future next_of(Future wait):
    """Return the wait that must end before this one can end, or None."""
    cdef Future following = None
    if not isinstance(wait, ChannelWait) and not may_end_by_itself(wait):
        with cython.critical_section(wait):
            following = wait.deferred_to
    return wait_of(waited_for(wait)) if following is None else following


cdef object circle_from(Future wait, set seen):
    """Follow the edges. Return the waits of the circle that they end in, unless these were `seen` before."""
    cdef list path = []
    while wait is not None and wait not in seen:
        seen.add(wait)
        path.append(wait)
        wait = next_of(wait)
    if wait is None or wait not in path:
        return None
    return path[path.index(wait):]


cdef bint is_closed(list circle) except -1:
    """Whether these waits still form a circle, in the second pass, and a channel is full."""
    cdef bint is_full = False
    for position, wait in enumerate(circle):
        if next_of(<Future>wait) is not circle[(position + 1) % len(circle)]:
            return False
        is_full |= waits_for_room(wait)
    return is_full


cdef bint waits_for_room(wait) noexcept:
    return isinstance(wait, ChannelWait) and (<ChannelWait>wait).line.sends


cdef int break_up(list circle) except -1:
    """Grow the smallest of the channels that may grow. Without one, fail a wait for room."""
    cdef Pipe pipe
    cdef Pipe smallest = None
    assert holds(circle and len(set(circle)) == len(circle))
    for wait in filter(waits_for_room, circle):
        pipe = (<ChannelEnd>(<ChannelWait>wait).end).pipe
        if pipe.grows and (smallest is None or pipe.channel.capacity() < smallest.channel.capacity()):
            smallest = pipe
    if smallest is not None:
        smallest.grow()
        return 0
    assert holds(any([waits_for_room(each) for each in circle]))
    while not waits_for_room(circle[0]):
        circle.append(circle.pop(0))
    (<Future>circle[0]).complete(None, ChannelDeadlock(f"each waits for the next: {in_words(circle)}"))
    return 0


cdef str in_words(list circle):
    cdef list steps = []
    cdef str first = (<ChannelEnd>(<ChannelWait>circle[0]).end).user_name
    cdef str waiter = first
    for wait in circle:
        steps.append(f"{waiter} waits for {wait._wait_cause}")
        following = waited_for(<Future>wait)
        if following is None:  # an end has been closed
            break
        waiter = following._short_path
    if len(steps) > 2 * SHOWN + 1:
        steps[SHOWN:-SHOWN] = [f"... {len(steps) - 2 * SHOWN} more ..."]
    steps.append(first)
    return " -> ".join(steps)
