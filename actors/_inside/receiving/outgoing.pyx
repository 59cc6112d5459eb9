"""The messages that an actor on the event loop has sent to full mailboxes: they wait here, so that the loop need
not.

tell() returns at once, but the actor goes no further than its next `await`, or the end of its message, until all of
this has found room. So its pace is that of its receivers, and the mailboxes keep their bounds. Later messages to
such mailboxes go behind them, so their order is kept.

Room is waited for by a fence, which goes through the receiver's mailbox in its turn: see
ActorRef._fence(). All of it runs on the loop's thread.
"""

import asyncio
from collections import deque

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.admission cimport admit_or_dead_letter, look_in
from callboard._inside.sending.dead_lettering cimport ADMITTED, FULL, REFUSED, Fate, dead_letter_and_go_on
from callboard._inside.sending.overflow cimport Overflow, stayed_full
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport relaxed
from callboard.scheduling.context cimport current_context


cdef class Outgoing:
    """The messages of one actor that wait for room, and its steps that wait for them."""

    def __cinit__(self):
        self.loop = asyncio.get_running_loop()
        self.letters = deque()
        self.steps = {}
        self.ends = []
        self.refusals = {}

    @property
    def _what(self):
        """Say in words what the actor waits for; None if it does not wait. In any thread."""
        for to, _, _, _ in self.letters.copy():
            return f"room at {to._short_path}"
        return None

    cdef int add(self, ActorRef to, Letter letter, object variables, object errand) except -1:
        """Have a message wait behind the others."""
        self.letters.append((to, letter, variables, errand))
        if len(self.letters) == 1:
            self.wait_for_first()
        return 0

    cdef bint holds_back(self, object step) except -1:
        """Tell whether a step is to wait: for room, or for steps that have waited before it."""
        return bool(self.letters) or (len(self.steps) != 0 and next(iter(self.steps)) is not step)

    cdef object wait(self, object step):
        """Return a future that a step of a task can yield, to be resumed when there is a reason to."""
        future = self.loop.create_future()
        future._asyncio_future_blocking = True  # as its __await__ does
        self.steps[step] = future  # in its old place, if it has one
        return future

    cdef int let_go_on(self, object step) except -1:
        """A step waits no more: it goes on, or ends."""
        self.steps.pop(step, None)
        if not self.letters:
            self.resume_first_step()

    cdef bint is_over(self) except -1:
        """Tell whether nothing waits, and nobody is to be told anything."""
        return not (self.letters or self.steps or self.ends or self.refusals)

    cdef object take_refusal(self, object errand):
        return self.refusals.pop(errand, None)

    cdef int send_all(self) except -1:
        """Send what waits past all bounds: the actor ends, or the loop does."""
        while self.letters:
            self.send(self.letters.popleft(), True)
        self.forget_first()
        self.resume_first_step()
        return 0

    cdef bint send(self, tuple entry, bint past_capacity) except -1:
        """Send if there is room, or make a dead letter if there is nobody. False: there is no room."""
        cdef ActorRef to = <ActorRef>entry[0]
        cdef Letter letter = <Letter>entry[1]
        cdef object variables = entry[2]
        cdef Fate found = look_in(to.cell, past_capacity)
        if found == FULL:
            return False
        try:
            if found == ADMITTED:
                to.push_letter(letter, variables, current_context())
            else:
                admit_or_dead_letter(to, to.runtime, found, letter, current_context())
        except BaseException as error:
            self.refuse(entry, error)
        return True

    cdef int wait_for_first(self) except -1:
        cdef ActorRef to = <ActorRef>self.letters[0][0]
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
            assert holds((<Future>fence).flag.is_set() and self.letters)
            self.fence = None
            self.send_on()

    cdef int send_on(self) except -1:
        while self.letters:
            if not self.send(self.letters[0], False):
                self.wait_for_first()
                return 0
            self.letters.popleft()
            self.forget_first()
        self.resume_first_step()
        ends, self.ends = self.ends, []
        for end in ends:
            end()
        return 0

    def give_up(self):
        """The time is up for the first: send it all the same, or refuse all that want there, as its policy says."""
        cdef ActorRef to
        cdef Overflow overflow
        assert holds(self.timer is not None and self.letters)
        entry = self.letters.popleft()
        to, letter, variables, _ = entry
        overflow = <Overflow>(<ActorCell*>to.cell).overflow
        self.forget_first()
        try:
            if overflow.give_up(to, stayed_full(to.cell.limits)) == ADMITTED:  # it has its room
                to.push_letter(<Letter>letter, variables, current_context())
        except BaseException as error:
            self.refuse(entry, error)
            waiting, self.letters = self.letters, deque()
            for entry in waiting:
                if entry[0] is to:
                    to.cell.limits.add_dropped(1, relaxed)
                    self.refuse(entry, error)
                else:
                    self.letters.append(entry)
        self.send_on()

    cdef int refuse(self, tuple entry, object error) except -1:
        cdef ActorRef to = <ActorRef>entry[0]
        cdef Letter letter = <Letter>entry[1]
        if letter.reply_to is not None:  # who asked hears of it by the future
            letter.reply_to.complete(None, error)
            return 0
        dead_letter_and_go_on(to, to.runtime, letter, REFUSED, error)
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
    """Resume who waits for a future of asyncio."""
    if not future.done():
        future.set_result(None)
