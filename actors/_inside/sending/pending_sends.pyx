"""Messages that wait for room in a full mailbox, so that no thread has to wait.

They wait at their receiver if they were sent by `atell`, and with their sender if that is an actor on the event
loop. In both cases room is waited for by a fence, which goes through the receiver's mailbox in its turn: see
ActorRef._fence().
"""

import asyncio
import threading
import weakref
from collections import deque

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.overflow cimport Overflow, look_in, stayed_full
from callboard._inside.sending.stored_envelope cimport ADMITTED, FULL, REFUSED, Fate, dead_letter_and_go_on
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport relaxed
from callboard.core.monitoring.records cimport state_output

from callboard._inside.answers.wait_cause import WaitTarget, WaitCause
from callboard.core.errors import CallboardError


# --- at the receiver -----------------------------------------------------------------------------------
#
# Those that wait at one receiver are in one queue, in the order of the calls. The thread that passes the fence sends
# what finds room.


# For all queues. Nobody runs a user's code under it, but for what garbage collection runs in the same thread.
cdef object lock = threading.RLock()
cdef object queues = weakref.WeakKeyDictionary()  # receiver -> its Queue
cdef int active = 0  # how many queues have messages


cdef class Sent(Future):
    """Done, and awaited without a step of the event loop."""

    def __await__(self):
        return self

    def __iter__(self):  # asyncio's wait_for() and gather() delegate by `yield from`
        return self

    def __next__(self):
        raise StopIteration

    @property
    def _wait_cause(self):
        return None  # it is ready


cdef class Behind(Future):
    """Done, but the coroutine that awaits it goes on in its next step."""

    def __await__(self):
        yield

    @property
    def _wait_cause(self):
        return None  # it is ready


cdef Future done(Future future):
    future.complete(None, None)
    return future


SENT = done(Sent.__new__(Sent))
BEHIND = done(Behind.__new__(Behind))


cdef class Unsent(Future):
    """Messages that are not sent yet. A cancelled `await` takes back those that still wait."""

    def __await__(self):
        try:
            return (yield from Future.__await__(self))
        except BaseException:
            self.take_back()
            raise

    @property
    def _wait_cause(self):
        to = self.to()
        return None if to is None else WaitCause(WaitTarget.ROOM, to)

    cdef char blocks_on(self) noexcept:
        return state_output

    def take_back(self):
        """Send nothing more."""
        if self.take_all():
            self.complete(None, CallboardError("a message was not sent: the wait for room was cancelled"))

    def cancel(self):
        """Take back what still waits, and complete with AskCancelled. False if it was complete already."""
        self.take_all()
        return Future.cancel(self)

    def give_up(self):
        """The time is up: send all the same, or refuse, as the overflow policy says."""
        to = self.to()
        refusal = None
        for stored, variables in self.take_all() if to is not None else ():
            try:
                give_up_at(to, <StoredEnvelope>stored, variables)
            except BaseException as error:
                refusal = error if refusal is None else refusal
        self.complete(None, refusal)

    cdef object take_all(self):
        with lock:
            envelopes, self.messages = self.messages, deque()
        return envelopes


cdef int give_up_at(Handle to, StoredEnvelope stored, object variables) except -1:
    cdef Overflow overflow = <Overflow>(<ActorCell*>to.cell).overflow
    try:
        overflow.give_up(to, stayed_full(to.cell.limits))
    except BaseException as error:
        if stored.reply_to is not None:
            stored.reply_to.complete(None, error)
        raise
    to._deliver(stored, variables, ADMITTED)
    return 0


cdef class Queue:
    """The messages that wait for room at one receiver."""

    cdef object to            # a weak reference: the receiver's mailbox may hold this
    cdef object waiting       # a deque of Unsent, the first in front
    cdef bint is_active       # a fence is on its way, or somebody is sending

    def go_on(self, fence):
        """Send what finds room, and wait for more room if something is left."""
        cdef Fate found = ADMITTED
        cdef Unsent first = None
        to = self.to()
        while to is not None:
            with lock:
                found, is_last, first = self.take(to)
                if first is None:
                    return
                if found != FULL:
                    stored, variables = first.messages.popleft()
            if found == FULL:
                to._fence().add_done_callback(self.go_on)
                return
            try:
                to._deliver(stored, variables, found)
            except BaseException as error:
                first.complete(None, error)
            if is_last:
                first.complete(None, None)

    cdef tuple take(self, Handle to):
        """Take room for the first message, if there is room, and tell whether it is its call's last."""
        global active
        cdef Unsent first
        while self.waiting:
            first = self.waiting[0]
            if first.messages:
                return look_in(to.cell, False), len(first.messages) == 1, first
            self.waiting.popleft()
        self.is_active = False
        active -= 1
        return FULL, False, None


cdef bint is_awaited(Handle to) except -1:
    """Tell whether messages wait for room here."""
    if active == 0:
        return False
    with lock:
        queue = queues.get(to)
    return queue is not None and (<Queue>queue).is_active


cdef Unsent wait_outside(Handle to, object timers, StoredEnvelope stored, object variables):
    """Have a message wait for room, for the time of the mailbox at most."""
    global active
    cdef Unsent unsent = Unsent.__new__(Unsent)
    cdef Queue queue = Queue.__new__(Queue)
    assert holds(to.cell.limits != NULL)
    unsent.to = queue.to = weakref.ref(to)
    unsent.messages = deque([(stored, variables)])
    queue.waiting = deque()
    with lock:
        queue = <Queue>queues.setdefault(to, queue)
        queue.waiting.append(unsent)
        is_first = not queue.is_active
        queue.is_active = True
        active += is_first
    timer = timers.call_after(to.cell.limits.timeout_ns / 1e9, unsent.give_up)
    if not unsent._take_timer(timer):
        timer.cancel()
    if is_first:
        queue.go_on(None)
    return unsent


cdef bint wait_behind(Unsent unsent, StoredEnvelope stored, object variables) except -1:
    """Have one more message of the same call wait. False: the call's others no longer wait."""
    with lock:
        if not unsent.messages:
            return False
        unsent.messages.append((stored, variables))
    return True


# --- with the sender, on the event loop ------------------------------------------------------------------
#
# tell() returns at once, but the actor goes no further than its next `await`, or the end of its message, until all of
# this has found room. So its pace is that of its receivers, and the mailboxes keep their bounds. Later messages to
# such mailboxes go behind them, so their order is kept. All of it runs on the loop's thread.


cdef class Outgoing:
    """The messages of one actor that wait for room, and its steps that wait for them."""

    def __cinit__(self):
        self.loop = asyncio.get_running_loop()
        self.messages = deque()
        self.steps = {}
        self.ends = []
        self.refusals = {}

    @property
    def _full(self):
        """The actor at which the first message waits for room; None if none does. In any thread."""
        for to, _, _, _ in self.messages.copy():
            return to
        return None

    cdef int add(self, ActorHandle to, StoredEnvelope stored, object variables, object loop_task) except -1:
        """Have a message wait behind the others."""
        self.messages.append((to, stored, variables, loop_task))
        if len(self.messages) == 1:
            self.wait_for_first()
        return 0

    cdef bint holds_back(self, object step) except -1:
        """Tell whether a step is to wait: for room, or for steps that have waited before it."""
        return bool(self.messages) or (len(self.steps) != 0 and next(iter(self.steps)) is not step)

    cdef object wait(self, object step):
        """Return a future that a step of a task can yield, to be resumed when there is a reason to."""
        future = self.loop.create_future()
        future._asyncio_future_blocking = True  # as its __await__ does
        self.steps[step] = future  # in its old place, if it has one
        return future

    cdef int let_go_on(self, object step) except -1:
        """A step no longer waits: it goes on, or ends."""
        self.steps.pop(step, None)
        if not self.messages:
            self.resume_first_step()

    cdef bint is_over(self) except -1:
        """Tell whether nothing waits, and no refusal is left to be told."""
        return not (self.messages or self.steps or self.ends or self.refusals)

    cdef object take_refusal(self, object loop_task):
        return self.refusals.pop(loop_task, None)

    cdef int send_all(self) except -1:
        """Send what waits past all bounds: the actor ends, or the loop does."""
        while self.messages:
            self.send(self.messages.popleft(), True)
        self.forget_first()
        self.resume_first_step()
        return 0

    cdef bint send(self, tuple entry, bint past_capacity) except -1:
        """Send if there is room, or make a dead letter if the receiver has stopped. False: there is no room."""
        cdef ActorHandle to = <ActorHandle>entry[0]
        cdef StoredEnvelope stored = <StoredEnvelope>entry[1]
        cdef object variables = entry[2]
        cdef Fate found = look_in(to.cell, past_capacity)
        if found == FULL:
            return False
        try:
            to._deliver(stored, variables, found)
        except BaseException as error:
            self.refuse(entry, error)
        return True

    cdef int wait_for_first(self) except -1:
        cdef ActorHandle to = <ActorHandle>self.messages[0][0]
        assert holds(self.fence is None and to.cell.limits != NULL)  # one fence at a time
        if self.timer is None:  # else it has waited before, and others were faster
            self.timer = self.loop.call_later(to.cell.limits.timeout_ns / 1e9, self.give_up)
        self.fence = to._fence()
        self.fence.add_done_callback(self.tell_loop)
        return 0

    def tell_loop(self, fence):
        """Say that there may be room. In any thread."""
        try:
            self.loop.call_soon_threadsafe(self.go_on, fence)
        except RuntimeError:
            pass  # the loop was closed

    def go_on(self, fence):
        """Send what finds room now."""
        if fence is self.fence:  # else it is of one that has been sent, or given up
            assert holds((<Future>fence).flag.is_set() and self.messages)
            self.fence = None
            self.send_on()

    cdef int send_on(self) except -1:
        while self.messages:
            if not self.send(self.messages[0], False):
                self.wait_for_first()
                return 0
            self.messages.popleft()
            self.forget_first()
        self.resume_first_step()
        ends, self.ends = self.ends, []
        for end in ends:
            end()
        return 0

    def give_up(self):
        """The time is up for the first: send it all the same, or refuse all for that mailbox, as its policy says."""
        cdef ActorHandle to
        cdef Overflow overflow
        assert holds(self.timer is not None and self.messages)
        entry = self.messages.popleft()
        to, stored, variables, _ = entry
        overflow = <Overflow>(<ActorCell*>to.cell).overflow
        self.forget_first()
        try:
            if overflow.give_up(to, stayed_full(to.cell.limits)) == ADMITTED:  # it has its room
                to._deliver(stored, variables, ADMITTED)
        except BaseException as error:
            self.refuse(entry, error)
            waiting, self.messages = self.messages, deque()
            for entry in waiting:
                if entry[0] is to:
                    to.cell.limits.add_dropped(1, relaxed)
                    self.refuse(entry, error)
                else:
                    self.messages.append(entry)
        self.send_on()

    cdef int refuse(self, tuple entry, object error) except -1:
        cdef ActorHandle to = <ActorHandle>entry[0]
        cdef StoredEnvelope stored = <StoredEnvelope>entry[1]
        if stored.reply_to is not None:  # the asker is told by the future
            stored.reply_to.complete(None, error)
            return 0
        dead_letter_and_go_on(to, to.runtime, stored, REFUSED, error)
        self.refusals[entry[3]] = error
        for future in self.steps.values():  # the one that is refused need not be the first
            resume(future)
        return 0

    cdef int forget_first(self) except -1:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.fence = None
        return 0

    cdef int resume_first_step(self) except -1:
        """Have the first that waits look again; when it goes on, the next one does."""
        for future in self.steps.values():
            resume(future)
            return 0
        return 0


cdef void resume(object future) except *:
    """Complete a future of asyncio, if it is not done."""
    if not future.done():
        future.set_result(None)
