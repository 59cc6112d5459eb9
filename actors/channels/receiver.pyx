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
    """Takes values from a channel. Values of one sender come out in the order in which they went in.

    `async for` and `for` take values until the channel ends.
    """

    def receive(self, timeout=None):
        """Return an awaitable that waits for the next value and takes it.

        If it is cancelled, it takes nothing.

        Raises:
            ChannelTimeout: After `timeout` seconds.
            ChannelClosed: No more values can come. ChannelCancelled or ChannelFailed if that is the reason.
            ChannelOwnershipError: The end belongs to another user.
        """
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        operation = renewed(Receive, receives, self)
        operation.timeout = limit
        return operation

    def get(self, timeout=None):
        """Like receive(), but for a plain thread, which sleeps until there is a value.

        Raises the same, and CallboardError in an actor without `dedicated=True`.
        """
        return (<Receive>self.receive(timeout)).block("get", "receive")

    def receive_nowait(self, default=NOTHING):
        """Take the next value without waiting, or return `default`.

        Raises ChannelEmpty if there is neither, ChannelClosed if no more values can come, and ChannelOwnershipError.
        """
        self.use()
        value = self.take(NOTHING)
        if value is not NOTHING:
            return value
        if default is NOTHING:
            raise ChannelEmpty(f"{self!r} has no value")
        return default

    def receive_many(self, max_items, timeout=None):
        """Return an awaitable that takes a list of the next values: at least one and at most `max_items`."""
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        many = checks.whole("max_items of receive_many()", max_items, 1, 2**62)
        operation = renewed(ReceiveMany, receives_many, self)
        operation.most, operation.timeout = many, limit
        return operation

    def get_many(self, max_items, timeout=None):
        """Like receive_many(), but for a plain thread."""
        return (<ReceiveMany>self.receive_many(max_items, timeout)).block("get_many", "receive_many")

    def receive_many_nowait(self, max_items):
        """Take a list of the available values, at most `max_items`, without waiting."""
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

    def _pipe_to(self, ActorRef ref not None):
        """See ActorRef.pipe()."""
        return ref.runtime.spawner(None, Piping, (self.release(), ref), {})

    def peek(self):
        """Return the next value without taking it from the channel.

        Raises ChannelEmpty, ChannelClosed, ChannelOwnershipError.
        """
        self.use()
        while True:
            pipe = self.pipe
            value = pipe.look(NOTHING)
            if value is not NOTHING:
                return value
            if not self.is_at_end() or self.pipe is pipe:  # at capacity 0 an offer is not a value yet
                raise ChannelEmpty(f"{self!r} has no value")

    def close(self):
        """Close the channel: senders now get ChannelClosed. The values in it can still be received.

        Any thread may call this. Closing again does nothing.
        """
        cdef Receiver other
        if not self.closed and not self.spent:
            self.use()
            self.closed = True
            self.set_known(None)
            self.pipe.end_receiver()
            if self.pipe.receivers.has(self):  # another coroutine of the same loop, for one
                self.pipe.receivers.wake_all()
            for other in self.following or ():
                other.closed = True
                other.pipe.end_receiver()
            if self.accounted:
                self.activity.note_end(end_closed)

    def cancel(self):
        """Drop the values in the channel, which become dead letters.

        Senders and other receivers get ChannelCancelled.
        """
        self.use()
        self.leave("channel cancelled", True, self)
        if self.accounted:
            self.activity.note_end(end_closed)

    def clone(self):
        """Return another receiver of the same channel, for another user. Each value goes to only one of them."""
        cdef Receiver other = Receiver.__new__(Receiver)
        if self.closed or self.spent:
            raise ChannelClosed(f"{self!r} was closed by its user")
        other.pipe = self.pipe
        self.pipe.add_end(self.pipe.receivers)
        return other

    def replace(self, Receiver other not None):
        """Receive from the channel of `other` once this one has ended. `other` can no longer be used.

        LPEL's stream replacement (Prokesch 2011, 4.4.4). Raises ChannelOwnershipError if `other` belongs to another
        user.
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
        """Take a value, or return `nothing`. Raises ChannelClosed if none can come."""
        while True:
            value = self.pipe.try_take(nothing)
            if value is not nothing:
                if self.accounted:
                    self.activity.note_moved(1)
                return value
            if not self.is_at_end():
                return value

    cdef bint is_at_end(self) except -1:
        """Whether another channel follows here. False: a value may come. Raises ChannelClosed if none can."""
        cdef Receiver other
        if not self.pipe.is_over():
            if self.pipe.has_values():
                return True
            if self.closed:  # but another receiver goes on
                raise ChannelClosed(f"{self!r} was closed by its user")
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
        """Stop receiving, from this channel and from those that were to follow."""
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
