"""Native actors that show what the runtime does with them."""

from array import array

from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.buffer cimport Buffer
from callboard.native cimport ActorRef, Kind, Message, NativeActor

from callboard import Actor


cdef class Echo(NativeActor):
    """Send each message on to another actor as it is; answer an ask with the same value."""

    cdef ActorRef to

    def __init__(self, ActorRef to=None):
        self.to = to

    cdef void receive(self, Message* message) noexcept nogil:
        if self.asked == NULL:
            self.forward(self.to, message)
        elif message.kind == Kind.integer:
            self.answer_integer(message.integer)
        elif message.kind == Kind.real:
            self.answer_real(message.real)
        else:
            self.answer_buffer(<Buffer*>message.first)


cdef class Forwarder(NativeActor):
    """Pass everything on, asks included."""

    cdef ActorRef to

    def __init__(self, ActorRef to not None):
        self.to = to

    cdef void receive(self, Message* message) noexcept nogil:
        self.forward(self.to, message)


cdef class Passer(NativeActor):
    """Pass everything on to nobody."""

    cdef void receive(self, Message* message) noexcept nogil:
        self.forward(None, message)


cdef class Silent(NativeActor):
    """Answer nothing, and keep nothing."""

    cdef void receive(self, Message* message) noexcept nogil:
        pass


cdef class Doubler(NativeActor):
    """Answer a buffer of 64-bit integers with a new one that holds their doubles."""

    cdef void receive(self, Message* message) noexcept nogil:
        cdef Buffer* source = <Buffer*>message.first
        cdef Buffer* result = Buffer.allocate(source.size)
        cdef int64_t i
        result.item_size = 8
        result.format = b"q"
        for i in range(source.size // 8):
            (<int64_t*>result.data)[i] = 2 * (<int64_t*>source.data)[i]
        self.answer_buffer(result)
        result.drop()


cdef class Fragile(NativeActor):
    """Fail on a negative number, stop on 0, answer others."""

    hooks = None

    def on_start(self):
        if self.hooks is not None:
            self.hooks.append("start")

    def on_stop(self):
        if self.hooks is not None:
            self.hooks.append("stop")

    cdef void receive(self, Message* message) noexcept nogil:
        if message.integer < 0:
            self.fail(b"a negative number")
        elif message.integer == 0:
            self.stop_self()
        else:
            self.answer_integer(message.integer)


cdef class NoReceive(NativeActor):
    """Does not override receive()."""


# About ten seconds.
cdef int64_t LOOKS = 4_000_000_000


cdef class Meeting(NativeActor):
    """Wait, without the interpreter, until another one waits too: only possible in parallel."""

    cdef int64_t[::1] seats
    cdef int place

    def __init__(self, int64_t[::1] seats, int place):
        self.seats = seats
        self.place = place

    cdef void receive(self, Message* message) noexcept nogil:
        cdef volatile int64_t* mine = &self.seats[self.place]
        cdef volatile int64_t* other = &self.seats[1 - self.place]
        cdef int64_t looks = 0
        mine[0] = 1
        while other[0] == 0 and looks < LOOKS:
            looks += 1
        mine[0] = 2 if other[0] else 3


# What a gossip notes of itself.
cdef enum:
    SENT, RECEIVED, DISORDERED


cdef class Gossip(NativeActor):
    """Tell one of two others something new for each thing heard, `left` times in all."""

    cdef int64_t[:, ::1] notes
    cdef int64_t[::1] heard  # the last number from each
    cdef int64_t[2] said     # to either
    cdef uint32_t number
    cdef int64_t left
    cdef uint64_t random
    cdef list all
    cdef ActorRef near, far

    def __init__(self, int64_t[:, ::1] notes, uint32_t number, int64_t left, list all):
        self.notes = notes
        self.heard = array("q", bytes(8 * notes.shape[0]))
        self.number = self.random = number
        self.left = left
        self.all = all

    cdef void receive(self, Message* message) noexcept nogil:
        if self.near is None:  # others may be quicker than the first message from outside
            with gil:
                self.near = self.all[(self.number + 1) % len(self.all)]
                self.far = self.all[(7 * self.number + 3) % len(self.all)]
        if message.integer > 0:
            self.notes[self.number, RECEIVED] += 1
            self.notes[self.number, DISORDERED] += message.integer != self.heard[message.tag] + 1
            self.heard[message.tag] = message.integer
        if self.left == 0:
            return
        self.left -= 1
        self.notes[self.number, SENT] += 1
        self.random = self.random * 6364136223846793005u + 1442695040888963407u
        cdef int whom = self.random >> 63
        self.said[whom] += 1
        if whom == 0:
            self.send_integer(self.near, self.said[0], self.number)
        else:
            self.send_integer(self.far, self.said[1], self.number)


# What is noted of a game: see test_fairness.py.
cdef enum:
    COUNT, LONGEST, CALLED
    CALLS = 40
    MOST_MESSAGES = 200_000


cdef class Chatty(NativeActor):
    """Hand each ball to its partner, and now and then call a third, until it has enough."""

    cdef int64_t[::1] notes
    cdef ActorRef third, other
    cdef list pair
    cdef int partner

    def __init__(self, int64_t[::1] notes, ActorRef third not None, list pair, int partner):
        self.notes = notes
        self.third = third
        self.pair = pair
        self.partner = partner

    cdef void receive(self, Message* message) noexcept nogil:
        if self.other is None:
            with gil:
                self.other = self.pair[self.partner]
        self.notes[COUNT] += 1
        if self.notes[CALLED] == CALLS or self.notes[COUNT] > MOST_MESSAGES:
            return
        if self.notes[COUNT] % 997 == 0:
            self.send_integer(self.third, self.notes[COUNT])
        self.send_integer(self.other, message.integer)


cdef class Third(NativeActor):
    """Note how many messages the pairs have handled since it was called."""

    cdef int64_t[::1] notes

    def __init__(self, int64_t[::1] notes):
        self.notes = notes

    cdef void receive(self, Message* message) noexcept nogil:
        self.notes[CALLED] += 1
        self.notes[LONGEST] = max(self.notes[LONGEST], self.notes[COUNT] - message.integer)


class Rally(Actor):
    """A Python actor that is compiled, and from its first message on always has another one."""

    def receive(self, message):
        self.ref.tell("next")
        return "begun"


cdef class Slow(NativeActor):
    """Take as many nanoseconds for a message as it says, and count."""

    cdef int64_t[::1] handled

    def __init__(self, int64_t[::1] handled):
        self.handled = handled

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t end = monotonic_ns() + message.integer
        while monotonic_ns() < end:
            pass
        self.handled[0] += 1
