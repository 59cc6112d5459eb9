"""Messages that wait for room outside a full mailbox, so that their senders need not block: see `atell`.

Those that wait at one receiver are in one queue, in the order of the calls. Room is waited for by a fence, which goes
through the receiver's mailbox in its turn: see ActorRef._fence(). The thread that passes it sends what finds room.
"""

import threading
import weakref
from collections import deque

from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.admission cimport look_in
from callboard._inside.sending.dead_lettering cimport ADMITTED, FULL, Fate
from callboard._inside.sending.overflow cimport Overflow, stayed_full
from callboard.core.asserting cimport holds
from callboard.core.monitoring.records cimport state_output

from callboard.core.errors import CallboardError


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


cdef class Behind(Future):
    """Done, but the coroutine that awaits it goes on in its next step."""

    def __await__(self):
        yield


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
    def _what(self):
        to = self.to()
        return None if to is None else f"room at {to._short_path}"

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
        for letter, variables in self.take_all() if to is not None else ():
            try:
                give_up_at(to, <Letter>letter, variables)
            except BaseException as error:
                refusal = error if refusal is None else refusal
        self.complete(None, refusal)

    cdef object take_all(self):
        with lock:
            letters, self.letters = self.letters, deque()
        return letters


cdef int give_up_at(Handle to, Letter letter, object variables) except -1:
    cdef Overflow overflow = <Overflow>(<ActorCell*>to.cell).overflow
    try:
        overflow.give_up(to, stayed_full(to.cell.limits))
    except BaseException as error:
        if letter.reply_to is not None:
            letter.reply_to.complete(None, error)
        raise
    to._deliver(letter, variables, ADMITTED)
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
                    letter, variables = first.letters.popleft()
            if found == FULL:
                to._fence().add_done_callback(self.go_on)
                return
            try:
                to._deliver(letter, variables, found)
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
            if first.letters:
                return look_in(to.cell, False), len(first.letters) == 1, first
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


cdef Unsent wait_outside(Handle to, object timers, Letter letter, object variables):
    """Have a message wait for room, for the time of the mailbox at most."""
    global active
    cdef Unsent unsent = Unsent.__new__(Unsent)
    cdef Queue queue = Queue.__new__(Queue)
    assert holds(to.cell.limits != NULL)
    unsent.to = queue.to = weakref.ref(to)
    unsent.letters = deque([(letter, variables)])
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


cdef bint wait_behind(Unsent unsent, Letter letter, object variables) except -1:
    """Have one more message of the same call wait. False: the call's others do not wait any more."""
    with lock:
        if not unsent.letters:
            return False
        unsent.letters.append((letter, variables))
    return True
