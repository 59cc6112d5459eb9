"""Native actors to start from: a stage of a pipeline, a sum, a player of ping-pong, a word counter;
two operators of streams; and an account that threads use without waiting for each other."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libcpp.unordered_map cimport unordered_map

from callboard.core.memory.buffer cimport Buffer
from callboard.mailbox.delegation cimport Delegation
from callboard.native cimport ActorRef, Kind, Message, NativeActor
from callboard.streams.native cimport NativeOperator, Output, Value


cdef class Stage(NativeActor):
    """Add 1 to each integer and pass it on."""

    cdef ActorRef next

    def __init__(self, ActorRef next not None):
        self.next = next

    cdef void receive(self, Message* message) noexcept nogil:
        self.send_integer(self.next, message.integer + 1)


cdef class Sum(NativeActor):
    """Sum up integers; an ask is answered with the sum. Tell `done`, a ref, when there were `count`."""

    cdef int64_t total
    cdef int64_t left
    cdef ActorRef done

    def __init__(self, int64_t count=-1, ActorRef done=None):
        self.left = count
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        if self.asked != NULL:
            self.answer_integer(self.total)
            return
        self.total += message.integer
        self.left -= 1
        if self.left == 0:
            self.send_integer(self.done, self.total)


cdef class Player(NativeActor):
    """Send a number back and forth, less one each time, until it is 0."""

    cdef ActorRef peer
    cdef ActorRef done

    def __init__(self, ActorRef peer=None, ActorRef done=None):
        self.peer = peer
        self.done = done

    def meet(self, ActorRef peer):
        self.peer = peer

    cdef void receive(self, Message* message) noexcept nogil:
        if message.kind == Kind.buffer:
            return
        if message.integer > 0:
            self.send_integer(self.peer, message.integer - 1)
        else:
            self.send_integer(self.done, 0)


cdef class LineCounter(NativeActor):
    """Count line ends in the memory of bytes or arrays, without a copy."""

    cdef int64_t lines

    cdef void receive(self, Message* message) noexcept nogil:
        cdef Buffer* buffer
        cdef int64_t i
        if message.kind == Kind.buffer:
            buffer = <Buffer*>message.first
            for i in range(buffer.size):
                self.lines += (<const char*>buffer.data)[i] == 10
        if self.asked != NULL:
            self.answer_integer(self.lines)


cdef class Even(NativeOperator):
    """Give the even integers of a stream."""

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            if values[i].integer % 2 == 0:
                out.push(values[i])


cdef class Counts(NativeOperator):
    """Keyed by the integers themselves: give how often each has come so far, tagged with it."""

    cdef unordered_map[int64_t, int64_t] counts

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            self.counts[values[i].integer] += 1
            out.push_integer(self.counts[values[i].integer], <uint32_t>values[i].integer)


cdef struct Deposit:
    Deposit* next  # Delegation's, while the deposit waits
    int64_t amount


cdef class Account:
    """A balance that any thread adds to, with no lock.

    A thread that finds the account in use leaves its deposit with the thread that uses it, and goes on.
    """

    cdef Delegation[Deposit] use
    cdef int64_t total

    cdef int add(self, int64_t amount) except -1 nogil:
        cdef Deposit* following
        cdef Deposit* deposit = <Deposit*>malloc(sizeof(Deposit))
        if deposit == NULL:
            raise MemoryError()
        deposit.amount = amount
        if not self.use.own_or_delegate(deposit):
            return 0  # the thread that uses the account adds this deposit, too
        self.enter(deposit)
        while not self.use.try_release():  # False: others have left deposits meanwhile
            deposit = self.use.take()
            while deposit != NULL:
                following = deposit.next
                self.enter(deposit)
                deposit = following
        return 0

    cdef void enter(self, Deposit* deposit) noexcept nogil:
        self.total += deposit.amount
        free(deposit)

    def add_many(self, int64_t amount, int64_t times):
        """Add an amount so many times, without the interpreter lock."""
        with nogil:
            for _ in range(times):
                self.add(amount)

    @property
    def balance(self):
        """What has been added; ask when no thread adds any more."""
        return self.total
