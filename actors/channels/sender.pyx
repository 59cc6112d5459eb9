"""Senders, which put values into a channel, and `channel()`, which makes both ends."""

cimport cython
from cpython.object cimport PyObject

from callboard.channels.activity cimport end_closed, end_replaced
from callboard.channels.end cimport ChannelEnd
from callboard.channels.operation cimport Operation, make_awaitable, renewed
from callboard.channels.pipe cimport Pipe, ChannelSide
from callboard.channels.receiver cimport Receiver
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport Spare
from callboard.scheduling.context cimport current_context

from callboard.channels.errors import ChannelClosed, ChannelOwnershipError
from callboard.core import checks

cdef Spare sends
# The room is allocated at once: 8 GiB at most.
cdef object MOST = 2**30


cdef class Sender(ChannelEnd):
    """Puts values into a channel. Values of one sender come out in the order in which they went in."""

    def send(self, value, timeout=None):
        """Return an awaitable that waits for room and puts `value` into the channel.

        With capacity 0 it waits until the value is received. If it raises or is cancelled, the value is not in the
        channel. Its attribute `sent` tells whether the value was sent.

        Raises:
            ChannelTimeout: After `timeout` seconds.
            ChannelClosed: The channel was closed or cancelled.
            ChannelDeadlock: Tasks wait for each other in a circle.
            ChannelOwnershipError: The end belongs to another user.
        """
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        operation = renewed(Send, sends, self)
        operation.value, operation.timeout = value, limit
        operation.offer = 0
        operation.is_sent = False
        return operation

    def put(self, value, timeout=None):
        """Like send(), but for a plain thread, which sleeps until there is room.

        Raises the same, and CallboardError in an actor without `dedicated=True`.
        """
        (<Send>self.send(value, timeout)).block("put", "send")

    def send_nowait(self, value):
        """Put `value` into the channel if there is room. Return whether there was.

        With capacity 0 there is room while a receiver waits. Raises ChannelClosed, ChannelOwnershipError.
        """
        self.use()
        self.refuse_closed()
        done = self.pipe.try_put(value)
        if done and self.accounted:
            self.activity.note_moved(1)
        return done

    def close(self):
        """Close this sender. Once all are closed, receivers get the remaining values, then ChannelClosed.

        Any thread may call this. Closing again does nothing.
        """
        if not self.closed and not self.spent:
            self.use()
            self.end(None, None)
            if self.accounted:
                self.activity.note_end(end_closed)

    def cancel(self):
        """Drop the values in the channel, which become dead letters.

        Receivers and other senders get ChannelCancelled.
        """
        self.use()
        self.closed = True
        self.pipe.cancel("channel cancelled", None)
        if self.accounted:
            self.activity.note_end(end_closed)

    def clone(self):
        """Return another sender of the same channel, for another user.

        Both share the channel's capacity. The values of each sender come out in the order in which it sent them.
        """
        cdef Sender other = Sender.__new__(Sender)
        self.refuse_closed()
        other.pipe = self.pipe
        self.pipe.add_end(self.pipe.senders)
        return other

    def replace(self, Sender other not None):
        """Close the channel, and send into the channel of `other` from now on. `other` can no longer be used.

        LPEL's stream replacement (Prokesch 2011, 4.4.4). Raises ChannelOwnershipError if `other` belongs to another
        user.
        """
        self.use()
        other.use()
        if other is self or other.closed:
            raise ChannelOwnershipError(f"{self!r} cannot be replaced by {other!r}")
        other.release()
        if not self.closed:
            self.end(None, None)
        if self.accounted:
            self.activity.note_end(end_replaced)
            self.activity.restart(other.pipe.number, True)
        with cython.critical_section(self):  # others may look: see ChannelEnd._figures()
            self.pipe = other.pipe
        self.closed = False
        assert holds(other.user == NULL and other.known is None)
        self.set_known(self.owner)
        other.spent = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if self.pipe is not None and not self.closed and not self.spent:
            self.end(None, None)

    cdef bint is_done(self) noexcept:
        return self.closed or not self.pipe.takes_values()

    cdef int refuse_closed(self) except -1:
        if self.closed and not self.pipe.channel.is_cancelled():
            raise ChannelClosed(f"{self!r} was closed by its user")
        if not self.pipe.takes_values():
            raise self.closing()
        return 0

    cdef int end(self, object failure, str failed_by) except -1:
        self.closed = True
        self.set_known(None)
        self.pipe.end_sender(failure, failed_by)
        if self.pipe.senders.has(self):  # another coroutine of the same loop, for one
            self.pipe.senders.wake_all()
        return 0

    cdef void let_go(self, object failure) noexcept:
        if not self.closed and not self.spent:
            self.activity.begin(current_context())
            self.end(failure, self.user_name)
            if self.accounted:
                self.activity.note_end(end_closed)

    cdef ChannelSide side(self):
        return self.pipe.senders

    cdef bint is_sender(self) noexcept:
        return True

    cdef bint is_ready(self) noexcept:
        return self.is_done() or self.pipe.has_room() or self.spent


cdef class Send(Operation):
    """A value on its way into a channel."""

    @property
    def sent(self):
        """Whether the value is in the channel."""
        return self.is_sent

    cdef bint attempt(self, PyObject** outcome) except -1:
        cdef Sender end = <Sender>self.end
        cdef Pipe pipe = end.pipe
        end.use()
        if self.offer:
            if self.settle():
                return True
            if self.offer:
                return False
        if end.closed or pipe.channel.has_ended():
            end.refuse_closed()
        if pipe.is_rendezvous:
            self.offered_in = pipe
            self.offer = pipe.offer(self.value)
            return self.offer != 0 and self.settle()
        if not pipe.try_put(self.value):
            return False
        return self.has_sent()

    cdef bint has_sent(self) noexcept:
        cdef Sender end = <Sender>self.end
        self.value = self.offered_in = None
        self.is_sent = True
        if end.accounted:
            end.activity.note_moved(1)
        return True

    cdef bint settle(self) except -1:
        """Whether the offered value was taken. It is taken back when no receiver can take it any more."""
        cdef Sender end = <Sender>self.end
        cdef Pipe pipe = self.offered_in
        assert holds(self.offer != 0 and pipe is not None and not self.is_sent)
        if not pipe.was_taken(self.offer):
            if pipe.is_rendezvous and pipe is end.pipe and not end.is_done():
                return False
            if pipe.retract(self.offer):  # not if the channel has grown, with the value in it
                self.offer = 0
                return False
        return self.has_sent()

    cdef bint is_done_after_all(self) except -1:
        if self.offer and not self.is_sent and not self.offered_in.retract(self.offer):
            (<Sender>self.end).activity.begin(current_context())
            self.has_sent()
        return self.is_sent


make_awaitable(Send)


def channel(capacity, *, on_deadlock="raise"):
    """Make a channel with room for `capacity` values. Return its sender and its receiver.

    A stream of LPEL (Prokesch 2011, section 4.4).

    Args:
        capacity: With 0, `send()` waits until the value is received.
        on_deadlock: With "raise", if tasks wait for each other in a circle that includes this full channel, one of them
            gets ChannelDeadlock. With "grow", the channel's capacity is doubled instead.

    Raises ValueError for a capacity that is not a whole number of at least 0.
    """
    cdef Pipe pipe
    cdef Sender sender = Sender.__new__(Sender)
    cdef Receiver receiver = Receiver.__new__(Receiver)
    room = checks.whole("a channel's capacity", capacity, 0, MOST)
    grows = checks.one_of("on_deadlock", on_deadlock, ("raise", "grow")) == "grow"
    pipe = Pipe.__new__(Pipe, room, grows)
    sender.pipe = receiver.pipe = pipe
    return sender, receiver
