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
    """Return an awaitable that gives one of `ends` that is ready, and waits for one before.

    A receiver is ready when a value is there, or when the channel has ended; a sender when there is room, or when
    nobody receives. Nothing is taken or sent, so nothing is lost if it is cancelled. If several are ready, the first
    of `ends` is given: a Selection gives each its turn.

    LPEL's POLL (Prokesch 2011, 4.4.5). Raises ChannelTimeout after `timeout` seconds, ValueError without ends.
    """
    return Selection(ends).ready(timeout)


# --- what the native selector calls; the waker keeps the object alive ---------------------------------------


cdef bint is_ready(void* watch) noexcept with gil:
    return (<ChannelEnd>(<Membership>watch).end).is_ready()


cdef bint announce(void* watch, Wakeable* who) noexcept with gil:
    cdef Membership membership = <Membership>watch
    cdef Line line = (<ChannelEnd>membership.end).side()
    assert holds(membership.waker == NULL)  # it stands in one line, once
    membership.waker = who
    membership.line = line
    try:
        if line.join(membership):
            return True
    except BaseException:  # out of memory: it looks again
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
        """Wait no longer at the end. False: it was woken before."""
        cdef Wakeable* waker
        with cython.critical_section(self):
            waker = self.waker
            self.waker = NULL
        if waker == NULL:
            return False
        self.line.leave(self)
        return True


cdef class SelectionLine(Line):
    """Where a selection's user waits."""

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
    """Ends of which a user waits for any: registered once, each in turn when it is ready.

    To wait, and to be told which end is ready, costs the same for ten ends and for ten thousand. Ends may come and go
    while it is waited for. A selection and its ends belong to one user.
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
        """Wait for `end`, too. Raises TypeError, and ChannelOwnershipError if it is another user's or there already."""
        cdef Membership membership
        if not isinstance(end, ChannelEnd):
            raise TypeError(f"Selection() expects senders and receivers, got {safe_repr(end)}")
        (<ChannelEnd>end).use()
        if end in self.members:
            raise ChannelOwnershipError(f"{end!r} is in the selection already")
        membership = Membership.__new__(Membership, <ChannelEnd>end)
        self.members[end] = membership
        self.senders += (<ChannelEnd>end).side().sends
        self.selector.add(membership.member)
        assert holds(self.selector.size() == len(self.members) and self.senders <= len(self.members))

    def remove(self, end):
        """Wait for `end` no more. Raises KeyError if it is not there."""
        cdef Membership membership
        if end not in self.members:
            raise KeyError(end)
        membership = <Membership>self.members.pop(end)
        self.senders -= (<ChannelEnd>end).side().sends
        self.selector.remove(membership.member)
        assert holds(self.selector.size() == len(self.members) and self.senders >= 0)

    def ready(self, timeout=None):
        """Return an awaitable that gives an end that is ready. See select().

        Raises ChannelTimeout after `timeout` seconds.
        """
        limit = None if timeout is None else checks.seconds("timeout", timeout)
        operation = renewed(Ready, readies, self)
        operation.timeout = limit
        return operation

    def wait(self, timeout=None):
        """Like ready(), for a plain thread: sleep until an end is ready, and return it."""
        return (<Ready>self.ready(timeout)).block("wait", "ready")

    def ready_nowait(self):
        """Return an end that is ready just now, or None."""
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
            raise ValueError("a selection without ends would wait for ever")
        end = selection.take_next()
        if end is None:
            return False
        Py_INCREF(end)
        outcome[0] = <PyObject*>end
        return True


make_awaitable(Ready)
