"""Waits for any of several ends, at a cost that does not grow with their number."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from callboard.channels.end cimport ChannelEnd
from callboard.channels.object_channel cimport Member, ObjectWakeable, Wakeable, watching
from callboard.channels.operation cimport Operation, make_awaitable, renewed
from callboard.channels.pipe cimport Line, Watch, wake as wake_wait
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport Spare

from callboard.core.handles import public_names
from callboard.channels.errors import ChannelOwnershipError
from callboard.core import checks
from callboard.core.text import safe_repr

cdef Spare readies


def select(ends, timeout=None):
    """Return an awaitable that waits until one of `ends` is ready and returns that end.

    A receiver is ready if there is a value, or if the channel has ended; a sender if there is room, or if there are no
    receivers. Nothing is taken or sent, so a cancellation loses nothing. If several are ready, it returns the first of
    them. (A Selection returns them in rotation.)

    LPEL's POLL (Prokesch 2011, 4.4.5). Raises ChannelTimeout after `timeout` seconds, ValueError without ends.
    """
    return Selection(ends).ready(timeout)


# --- what the native selector calls; the waker keeps the object alive ---------------------------------------


cdef bint is_ready(void* watch) noexcept with gil:
    return (<ChannelEnd>(<Membership>watch).end).is_ready()


cdef bint announce(void* watch, Wakeable* who) noexcept with gil:
    cdef Membership membership = <Membership>watch
    cdef Line line = (<ChannelEnd>membership.end).side()
    assert holds(membership.waker == NULL)  # it is in one queue, once
    membership.waker = who
    membership.line = line
    try:
        if line.join(membership):
            return True
    except BaseException:  # out of memory: it tries again
        pass
    membership.waker = NULL
    return False


cdef bint withdraw(void* watch, Wakeable* who) noexcept with gil:
    return (<Membership>watch).withdraw_now()


watching.is_ready, watching.announce, watching.withdraw = is_ready, announce, withdraw


cdef void wake_selection(Wakeable* waiter) noexcept with gil:
    (<SelectionLine>(<ObjectWakeable*>waiter).object).wake_all()


cdef class Membership(Watch):
    """An end in a selection."""

    def __cinit__(self, ChannelEnd end):
        self.end = end
        self.member.user = <void*>self

    cdef void wake(self) noexcept:
        cdef Wakeable* waker
        with cython.critical_section(self):
            waker = self.waker
            self.waker = NULL
        if waker != NULL:
            waker.wake(waker)

    cdef bint withdraw_now(self) noexcept:
        """Stop waiting at the end. False: it was woken before."""
        cdef Wakeable* waker
        with cython.critical_section(self):
            waker = self.waker
            self.waker = NULL
        if waker == NULL:
            return False
        self.line.leave(self)
        return True


cdef class SelectionLine(Line):
    """The queue in which a selection's user waits."""

    def __cinit__(self, Selection selection):
        self.selection = <void*>selection
        self.waits = []
        self.waiter.wake = wake_selection
        self.waiter.object = <void*>self

    cdef bint is_input(self) noexcept:
        return (<Selection>self.selection).senders == 0

    cdef bint join(self, object wait) except -1:
        with cython.critical_section(self):
            self.waits.append(wait)
        if (<Selection>self.selection).selector.announce(&self.waiter):
            return True
        self.leave(wait)
        return False

    cdef void leave(self, object wait) noexcept:
        with cython.critical_section(self):
            self.waits = [other for other in self.waits if other is not wait]

    cdef void wake_all(self) noexcept:
        with cython.critical_section(self):
            waits, self.waits = self.waits, []
        for wait in waits:
            wake_wait(wait)


cdef class Selection:
    """A set of ends, to wait until any of them is ready. Ready ends are returned in rotation.

    The cost of waiting does not depend on the number of ends. Ends can be added and removed during a wait. A selection
    and its ends belong to one user.
    """

    def __dir__(self):
        return public_names(self)

    def __cinit__(self):
        self.members = {}
        self.line = SelectionLine.__new__(SelectionLine, self)

    def __init__(self, ends=()):
        for end in ends:
            self.add(end)

    def __del__(self):
        cdef Membership membership
        while self.members:
            _, membership = self.members.popitem()
            self.selector.remove(membership.member)

    def add(self, end):
        """Add an end. Raises TypeError, or ChannelOwnershipError if it belongs to another user or was already added."""
        cdef Membership membership
        if not isinstance(end, ChannelEnd):
            raise TypeError(f"Selection() expects senders and receivers, got {safe_repr(end)}")
        (<ChannelEnd>end).use()
        if end in self.members:
            raise ChannelOwnershipError(f"{end!r} is already in the selection")
        membership = Membership.__new__(Membership, <ChannelEnd>end)
        self.members[end] = membership
        self.senders += (<ChannelEnd>end).side().sends
        self.selector.add(membership.member)
        assert holds(self.selector.size() == len(self.members) and self.senders <= len(self.members))

    def remove(self, end):
        """Remove an end. Raises KeyError if it is not there."""
        cdef Membership membership
        if end not in self.members:
            raise KeyError(end)
        membership = <Membership>self.members.pop(end)
        self.senders -= (<ChannelEnd>end).side().sends
        self.selector.remove(membership.member)
        assert holds(self.selector.size() == len(self.members) and self.senders >= 0)

    def ready(self, timeout=None):
        """Return an awaitable that waits for a ready end and returns it. See select().

        Raises ChannelTimeout after `timeout` seconds.
        """
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        operation = renewed(Ready, readies, self)
        operation.timeout = limit
        return operation

    def wait(self, timeout=None):
        """Like ready(), but for a plain thread, which sleeps until an end is ready."""
        return (<Ready>self.ready(timeout)).block("wait", "ready")

    def ready_nowait(self):
        """Return an end that is ready now, or None."""
        return self.take_next()

    def __aiter__(self):
        return self

    def __anext__(self):
        operation = renewed(Ready, readies, self)
        operation.iterates = True
        return operation

    def __len__(self):
        return len(self.members)

    def __bool__(self):
        return True

    def __contains__(self, end):
        return end in self.members

    def __iter__(self):
        return iter(list(self.members))

    def __repr__(self):
        return f"<Selection of {len(self.members)} ends>"

    cdef ChannelEnd take_next(self):
        cdef Member* member = self.selector.next()
        if member == NULL:
            return None
        end = <ChannelEnd>(<Membership>member.user).end
        assert holds(end in self.members)
        end.use()
        return end


cdef class Ready(Operation):
    """An end of a selection that is ready."""

    cdef Line line(self):
        return (<Selection>self.end).line

    cdef bint attempt(self, PyObject** outcome) except -1:
        cdef Selection selection = <Selection>self.end
        if not selection.members:
            if self.iterates:
                raise StopAsyncIteration
            raise ValueError("a selection without ends would never be ready")
        end = selection.take_next()
        if end is None:
            return False
        Py_INCREF(end)
        outcome[0] = <PyObject*>end
        return True


make_awaitable(Ready)
