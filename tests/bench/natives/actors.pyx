"""The behaviours of `savina` and of the native pipeline as native actors.

Each takes the constructor arguments and the messages of the behaviour whose name it has, so that
the same benchmark plays both; the messages are integers.
"""

from libc.stdint cimport int64_t, uint32_t
from libcpp.deque cimport deque
from libcpp.vector cimport vector

from callboard.native cimport ActorRef, Message, NativeActor

cdef extern from "operator.hpp" namespace "shapes" nogil:
    void multiply(double* values, uint32_t rows, int flops)


cdef class Player(NativeActor):
    cdef ActorRef next
    cdef int place
    cdef list ring
    cdef object done

    def __init__(self, int place, list ring, done):
        self.place = place
        self.ring = ring
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t left = message.integer
        if left > 0:
            self.send_integer(self.next, left - 1)
        else:
            with gil:
                self.join_or_end(left)

    cdef join_or_end(self, int64_t left):
        if left == 0:
            self.done(self.place)
        else:
            self.next = self.ring[(self.place + 1) % len(self.ring)]


cdef class Computing(NativeActor):
    """That of `elastic.actors`: at 0 it stops, and it is asked with -1 and -2."""

    cdef int flops
    cdef bint going
    cdef int64_t handled, sent

    def __init__(self, int flops):
        self.flops = flops
        self.going = True

    cdef void receive(self, Message* message) noexcept nogil:
        cdef double value = 1.0
        if message.integer < 0:
            self.answer_integer(self.sent if message.integer == -2 else self.handled)
            return
        multiply(&value, 1, self.flops)
        self.handled += value > 0  # as it is, which the compiler does not know
        self.going = self.going and message.integer == 1
        if self.going:
            self.sent += 1
            self.send_integer(self.own_ref, 1)


cdef class Counter(NativeActor):
    cdef int64_t total

    cdef void receive(self, Message* message) noexcept nogil:
        self.total += message.integer
        if self.asked != NULL:
            self.answer_integer(self.total)


cdef class Stage(NativeActor):
    cdef ActorRef next

    def __init__(self, ActorRef next not None):
        self.next = next

    cdef void receive(self, Message* message) noexcept nogil:
        self.send_integer(self.next, message.integer + 1)


cdef class Ends(NativeActor):
    cdef int64_t items, stages, window, sent, arrived, in_order
    cdef ActorRef first
    cdef list line
    cdef object done

    def __init__(self, int64_t items, list line, done, int64_t stages, int64_t window):
        self.items = items
        self.line = line
        self.done = done
        self.stages = stages
        self.window = window

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t item = message.integer
        if item < 0:
            with gil:
                self.first = self.line[-1]
            for _ in range(self.window):
                self.order()
            return
        self.in_order += item == self.arrived + self.stages
        self.arrived += 1
        if self.arrived == self.items:
            with gil:
                self.done(self.in_order)
        self.order()

    cdef void order(self) noexcept nogil:
        if self.sent < self.items:
            self.send_integer(self.first, self.sent)
            self.sent += 1


# The refs that an actor chooses from lie in a vector, which needs no interpreter; the list from
# which it is made keeps them alive. A pointer becomes a ref only as an argument, so that Cython has
# no reason to count it.
ctypedef bint (*Send)(void*, void*, int64_t, uint32_t) noexcept nogil


cdef bint send(NativeActor sender, ActorRef to, int64_t value, uint32_t tag) noexcept nogil:
    return sender.send_integer(to, value, tag)


cdef bint tell(NativeActor sender, void* to, int64_t value, uint32_t tag=0) noexcept nogil:
    return (<Send>send)(<void*>sender, to, value, tag)


cdef vector[void*] pointers(list refs):
    cdef vector[void*] found
    for ref in refs:
        found.push_back(<void*><ActorRef?>ref)
    return found


cdef class Feeder(NativeActor):
    """Tell the numbers below n to all of the refs, in turn; a few at a time, so that they are taken."""

    cdef int64_t n
    cdef list refs
    cdef vector[void*] to
    cdef object done

    def __init__(self, int64_t n, list refs, done):
        self.n = n
        self.refs = refs
        self.to = pointers(refs)
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t end = min(message.integer + 16, self.n)
        for number in range(message.integer, end):
            for to in self.to:
                tell(self, to, number)
        if end < self.n:
            self.send_integer(self.own_ref, end)
        else:
            with gil:
                self.done(end)


cdef class Chatter(NativeActor):
    cdef int64_t number, left, served, random
    cdef list peers
    cdef vector[void*] others
    cdef object done

    def __init__(self, int64_t number, int64_t n, list peers, done):
        self.number = self.random = number
        self.left = n
        self.peers = peers
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t value = message.integer
        if value == -2:
            self.answer_integer(self.served)
            return
        if self.others.empty():
            with gil:
                self.others = pointers(self.peers)
        if value >= 0:
            self.served += 1
            tell(self, self.others[value], -1)
        elif self.left > 0:
            self.left -= 1
            tell(self, self.others[self.another()], self.number)
        else:
            with gil:
                self.done(self.number)

    cdef int64_t another(self) noexcept nogil:
        """Choose any other actor, by a linear congruential generator."""
        cdef int64_t others = <int64_t>self.others.size() - 1
        self.random = (self.random * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.number + 1 + (self.random >> 8) % others) % (others + 1)


cdef class Child(NativeActor):
    cdef object done

    def __init__(self, done):
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        with gil:
            self.done(message.integer)
        self.stop_self()


# The tag of a message says what it is to an account, and its integer whom it concerns and how much.
cdef enum:
    TRANSFER = 1
    TAKE
    PAID
    ACCOUNTS = 1_000
    WIDTH = 128  # amounts are less


cdef class Account(NativeActor):
    cdef int64_t number, balance
    cdef bint paying
    cdef deque[int64_t] later
    cdef list refs, teller
    cdef vector[void*] others  # the accounts, and behind them the teller

    def __init__(self, int64_t number, list refs, list teller):
        self.number = number
        self.refs = refs
        self.teller = teller

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t value = message.integer
        if self.others.empty():
            with gil:
                self.others = pointers(self.refs + self.teller)
        if message.tag == TRANSFER:
            if self.paying:
                self.later.push_back(value)
            else:
                self.pay(value)
        elif message.tag == TAKE:
            self.balance += value % WIDTH
            tell(self, self.others[value // WIDTH], 0, PAID)
        elif message.tag == PAID:
            self.paying = False
            tell(self, self.others[ACCOUNTS], 0, PAID)
            if not self.later.empty():
                value = self.later.front()
                self.later.pop_front()
                self.pay(value)
        else:
            self.answer_integer(self.balance)

    cdef void pay(self, int64_t transfer) noexcept nogil:
        cdef int64_t amount = transfer % WIDTH
        self.paying = True
        self.balance -= amount
        tell(self, self.others[transfer // WIDTH], self.number * WIDTH + amount, TAKE)


cdef class Teller(NativeActor):
    cdef vector[int64_t] payers, transfers
    cdef size_t ordered, made
    cdef list refs
    cdef vector[void*] accounts
    cdef object done

    def __init__(self, orders, list refs, done):
        for payer, payee, amount in orders:
            self.payers.push_back(payer)
            self.transfers.push_back(payee * WIDTH + amount)
        self.refs = refs
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        if message.tag == PAID:
            self.made += 1
            self.order()
            if self.made == self.transfers.size():
                with gil:
                    self.done(0)
        else:
            with gil:
                self.accounts = pointers(self.refs)
            for _ in range(ACCOUNTS):
                self.order()

    cdef void order(self) noexcept nogil:
        if self.ordered < self.transfers.size():
            tell(self, self.accounts[self.payers[self.ordered]], self.transfers[self.ordered], TRANSFER)
            self.ordered += 1
