"""Receivers, which take values out of a channel."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

from callboard._inside.sending.ref cimport ActorRef
from callboard.channels.activity cimport end_closed, end_replaced
from callboard.channels.end cimport ChannelEnd
from callboard.channels.operation cimport Operation, make_awaitable, renewed
from callboard.channels.pipe cimport ChannelSide
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport Spare
from callboard.scheduling.context cimport current_context

from callboard.channels.errors import ChannelClosed, ChannelEmpty, ChannelOwnershipError
from callboard.channels.task import Piping
from callboard.core import checks

cdef object NOTHING = object()
cdef Spare receives
cdef Spare receives_many


cdef class Receiver(ChannelEnd):
    """Takes values out of a channel, in the order in which each sender put them in.

    `async for` and `for` take values until the channel ends.
    """

    def receive(self, timeout=None):
        """Return an awaitable that takes the next value, and waits for one before.

        Cancelled, it takes nothing. Raises ChannelTimeout after `timeout` seconds; ChannelClosed when no value can
        come any more, as ChannelCancelled or ChannelFailed if that is why; ChannelOwnershipError.
        """
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        operation = renewed(Receive, receives, self)
        operation.timeout = limit
        return operation

    def get(self, timeout=None):
        """Like receive(), for a plain thread: sleep until there is a value.

        Raises the same, and CallboardError in an actor that has no thread of its own.
        """
        return (<Receive>self.receive(timeout)).block("get", "receive")

    def receive_nowait(self, default=NOTHING):
        """Take the next value; if there is none, return `default`.

        Raises ChannelEmpty without a default, ChannelClosed when no value can come any more, ChannelOwnershipError.
        """
        self.use()
        value = self.take(NOTHING)
        if value is not NOTHING:
            return value
        if default is NOTHING:
            raise ChannelEmpty(f"{self!r} has no value")
        return default

    def receive_many(self, max_items, timeout=None):
        """Return an awaitable that takes a list of the next values: one at least, `max_items` at most."""
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        many = checks.whole("max_items of receive_many()", max_items, 1, 2**62)
        operation = renewed(ReceiveMany, receives_many, self)
        operation.most, operation.timeout = many, limit
        return operation

    def get_many(self, max_items, timeout=None):
        """Like receive_many(), for a plain thread."""
        return (<ReceiveMany>self.receive_many(max_items, timeout)).block("get_many", "receive_many")

    def receive_many_nowait(self, max_items):
        """Take a list of the values that are there, `max_items` at most; an empty one if there are none."""
        cdef list values = []
        cdef int64_t left = checks.whole("max_items of receive_many_nowait()", max_items, 1, 2**62)
        self.use()
        while left > 0:
            value = self.pipe.try_take(NOTHING)
            if value is NOTHING:
                break
            values.append(value)
            left -= 1
        if self.accounted and values:
            self.activity.note_moved(len(values))
        return values

    def _pour_into(self, ActorRef ref not None):
        """See ActorRef.pipe()."""
        return ref.runtime.spawner(None, Piping, (self.release(), ref), {})

    def peek(self):
        """Return the next value, and leave it in the channel.

        Raises ChannelEmpty, ChannelClosed, ChannelOwnershipError.
        """
        self.use()
        while True:
            pipe = self.pipe
            value = pipe.look(NOTHING)
            if value is not NOTHING:
                return value
            if not self.is_at_end() or self.pipe is pipe:  # at capacity 0 an offer is no value yet
                raise ChannelEmpty(f"{self!r} has no value")

    def close(self):
        """Have senders get ChannelClosed from now on. The values in the channel can still be received.

        In any thread that has the end. To close again does nothing.
        """
        cdef Receiver other
        if not self.closed and not self.spent:
            self.use()
            self.closed = True
            self.set_known(None)
            self.pipe.end_receiver()
            if self.pipe.receivers.has(self):  # such as another coroutine of the same loop
                self.pipe.receivers.wake_all()
            for other in self.following or ():
                other.closed = True
                other.pipe.end_receiver()
            if self.accounted:
                self.activity.note_end(end_closed)

    def cancel(self):
        """Receive no more: what is in the channel becomes dead letters, and senders get ChannelCancelled.

        Other receivers of the channel get it, too.
        """
        self.use()
        self.leave("channel cancelled", True, self)
        if self.accounted:
            self.activity.note_end(end_closed)

    def clone(self):
        """Return another receiver of the same channel, for another user: each value goes to one of them."""
        cdef Receiver other = Receiver.__new__(Receiver)
        if self.closed or self.spent:
            raise ChannelClosed(f"{self!r} was closed by its own user")
        other.pipe = self.pipe
        self.pipe.add_end(self.pipe.receivers)
        return other

    def replace(self, Receiver other not None):
        """Receive from the channel of `other` when this one has ended; `other` is this end then.

        LPEL's stream replacement (Prokesch 2011, 4.4.4). Raises ChannelOwnershipError if `other` is used by somebody
        else.
        """
        self.use()
        other.use()
        if other is self or other.closed:
            raise ChannelOwnershipError(f"{self!r} cannot be replaced by {other!r}")
        other.spent = True
        other.release()
        if self.following is None:
            self.following = []
        self.following.append(other)
        if other.following:
            self.following += other.following
            other.following = None

    def __aiter__(self):
        return self

    def __anext__(self):
        operation = renewed(Receive, receives, self)
        operation.iterates = True
        return operation

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.get()
        except ChannelClosed as end:
            if type(end) is not ChannelClosed:
                raise
            raise StopIteration from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.spent:
            self.cancel()

    def __del__(self):
        if self.pipe is not None and not self.spent:
            self.leave("never received", False, None)

    cdef object take(self, object nothing):
        """Take a value out, or return `nothing`. Raises ChannelClosed if none can come."""
        while True:
            value = self.pipe.try_take(nothing)
            if value is not nothing:
                if self.accounted:
                    self.activity.note_moved(1)
                return value
            if not self.is_at_end():
                return value

    cdef bint is_at_end(self) except -1:
        """Whether another channel begins here. False: a value may come. Raises ChannelClosed if none can."""
        cdef Receiver other
        if not self.pipe.is_over():
            if self.pipe.has_values():
                return True
            if self.closed:  # though another receiver goes on
                raise ChannelClosed(f"{self!r} was closed by its own user")
            return False
        if not self.following or self.pipe.failure is not None:
            raise self.closing()
        other = self.following.pop(0)
        self.set_known(None)
        assert holds(other.spent and other.user == NULL)
        self.pipe.leave_receiver(self.closed, "channel replaced", self)
        if self.accounted:
            self.activity.note_end(end_replaced)
            self.activity.restart(other.pipe.number, False)
        with cython.critical_section(self):  # others may look: see ChannelEnd._figures()
            self.pipe = other.pipe
        self.closed = other.closed
        self.set_known(self.owner)
        return True

    cdef void leave(self, str reason, bint is_cancelled, object receiver) noexcept:
        """Take nothing more, from this channel and those that were to follow."""
        cdef Receiver other
        self.set_known(None)
        following, self.following = self.following or (), None
        for other in (self, *following):
            if is_cancelled:
                other.pipe.cancel(reason, receiver)
            else:
                other.pipe.leave_receiver(other.closed, reason, receiver)
            other.closed = True

    cdef void let_go(self, object failure) noexcept:
        cdef bint was_closed = self.closed
        if not self.spent:
            self.activity.begin(current_context())
            self.leave("receiver stopped", False, self)
            if self.accounted and not was_closed:
                self.activity.note_end(end_closed)

    cdef ChannelSide side(self):
        return self.pipe.receivers

    cdef bint is_ready(self) noexcept:
        return self.pipe.has_values() or self.pipe.is_over() or self.closed or self.spent

    cdef bint is_done(self) noexcept:
        return (self.pipe.is_over() or self.closed and not self.pipe.has_values()) and not self.following


cdef class Receive(Operation):
    """The next value of a channel."""

    cdef bint attempt(self, PyObject** outcome) except -1:
        cdef Receiver end = <Receiver>self.end
        end.use()
        while not end.pipe.take(outcome):
            if not self.another_begins(end):
                return False
        if end.accounted:
            end.activity.note_moved(1)
        return True

    cdef bint another_begins(self, Receiver end) except -1:
        """Whether `end` has come to another channel. Raises StopAsyncIteration at the end of an iteration."""
        try:
            return end.is_at_end()
        except ChannelClosed as error:
            if self.iterates and type(error) is ChannelClosed:
                raise StopAsyncIteration from None
            raise


cdef class ReceiveMany(Operation):
    """The next values of a channel."""

    cdef bint attempt(self, PyObject** outcome) except -1:
        cdef Receiver end = <Receiver>self.end
        cdef list values
        end.use()
        value = end.take(NOTHING)
        if value is NOTHING:
            return False
        values = [value]
        while len(values) < self.most:
            value = end.pipe.try_take(NOTHING)
            if value is NOTHING:
                break
            values.append(value)
        assert holds(len(values) <= self.most)
        if end.accounted and len(values) > 1:
            end.activity.note_moved(len(values) - 1)
        Py_INCREF(values)
        outcome[0] = <PyObject*>values
        return True


make_awaitable(Receive)
make_awaitable(ReceiveMany)
