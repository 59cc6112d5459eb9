"""The base class of senders and receivers: each end belongs to one user at a time."""

import threading
import types

cimport cython

from callboard._inside.sending.ref cimport ActorRef
from callboard.channels.pipe cimport Watch
from callboard.core.asserting cimport holds
from callboard.scheduling.forward cimport Context
from callboard.scheduling.handle cimport actor_here

from callboard.core.handles import public_names
from callboard.channels.errors import ChannelCancelled, ChannelClosed, ChannelFailed, ChannelOwnershipError
from callboard.core.errors import ForkedSystem


cdef class ChannelEnd:
    """A sender or a receiver.

    An end belongs to the actor that is spawned with it as an argument, or otherwise to the actor, thread or event loop
    that uses it first, until `release()`. An actor's ends are closed when it ends.
    """

    def __dir__(self):
        return public_names(self)

    __class_getitem__ = classmethod(types.GenericAlias)

    @property
    def capacity(self):
        """The number of values that the channel can hold."""
        return self.pipe.channel.capacity()

    @property
    def _number(self):
        """The channel's number in this process, counted from 1."""
        return self.pipe.number

    @property
    def _is_closed(self):
        """True once an operation can only raise ChannelClosed."""
        return self.spent or self.is_done()

    def __len__(self):
        return self.pipe.channel.size()

    def __bool__(self):
        return True  # also without values

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"{self!r} cannot be pickled: a channel lives in one process")

    def __repr__(self):
        state = "closed" if self._is_closed else f"{len(self)} of {self.capacity}"
        whose = f", of {self.user_name}" if self.user_name is not None else ""
        return f"<{type(self).__name__} of channel {self.pipe.number}: {state}{whose}>"

    def release(self):
        """Release this end and return it. It then belongs to the next actor or thread that uses it.

        Raises ChannelOwnershipError while its owner waits at it.
        """
        if self.side().has(self):
            raise ChannelOwnershipError(f"{self!r} cannot be released while {self.user_name} waits at it")
        if self.owner is not None and self.owner.extra is not None and self.owner.extra.resources is not None:
            self.owner.extra.resources.discard(self)
        self.part()
        return self

    def _forbid(self):
        cdef ChannelSide side
        self.pipe.channel.cancel()
        for side in (self.pipe.senders, self.pipe.receivers):
            for wait in side.dissolve():  # there are no actors and other threads here, but selections of this one
                if isinstance(wait, Watch) and (<ChannelEnd>(<Watch>wait).end).owner is None:
                    (<Watch>wait).wake()

    cdef ChannelSide side(self):
        raise NotImplementedError

    cdef bint is_sender(self) noexcept:
        return False

    cdef int bind(self, Context* context, void* user) except -1:
        if context.current != NULL:
            self.belong_to(<ActorRef>actor_here())
        else:
            self.refuse_another(f"the thread {threading.current_thread().name!r}")
            assert holds(self.owner is None)
            self.user = user
        return 0

    cdef int refuse_another(self, str name) except -1:
        """Note the name of the new user, if there may be one."""
        if self.spent:
            raise ChannelOwnershipError(f"{self!r} was given to replace(): use the end that it replaces")
        if self.user != NULL:
            raise ChannelOwnershipError(f"{self!r} cannot be used by {name}, until its user calls release()")
        self.user_name = name
        return 0

    cdef int belong_to(self, ActorRef ref) except -1:
        if self.user == <void*>ref.cell:
            return 0
        self.refuse_another(ref._short_path)
        try:
            self.pipe.join_system(ref)
        except BaseException:
            self.user_name = None
            raise
        if ref.extras().resources is None:
            ref.extra.resources = set()
        ref.extra.resources.add(self)
        assert holds(self.user == NULL and self.known is None)
        self.owner = ref
        self.user = <void*>ref.cell
        self.set_known(None if self.closed else ref)
        self.activity.restart(self.pipe.number, self.is_sender())
        self.accounted = ref.runtime.notes_channels and ref.runtime.config.is_monitored(ref.recipe.cls)
        return 0

    cdef void part(self) noexcept:
        self.user = NULL
        self.user_name = None
        self.owner = None
        self.accounted = False
        self.set_known(None)

    cdef void set_known(self, ActorRef ref) noexcept:
        """Note in the side that the end belongs to the actor `ref`. None: to no actor, or that it is closed."""
        cdef ChannelSide side = self.side()
        with cython.critical_section(side):
            if self.known is not None:
                side.users.remove(self.known)
            self.known = ref
            if ref is not None:
                side.users.append(ref)
            assert holds(len(side.users) <= side.ends)

    cdef bint is_ready(self) noexcept:
        """Whether an operation of this end could be done."""
        return True

    cdef bint is_done(self) noexcept:
        """Whether nothing more can go in or come out here."""
        return self.closed

    def _figures(self):
        cdef Pipe pipe
        cdef str state = "C" if self.closed else "I"
        moved = None
        with cython.critical_section(self):  # the user may replace it
            pipe = self.pipe
        if self.accounted:
            moved = self.activity.moved()
            state = "C" if self.closed else chr(self.activity.state())
        mode = "w" if self.is_sender() else "r"
        return (pipe.number, mode, state, moved, pipe.channel.size(), pipe.channel.capacity())

    cdef object closing(self):
        """Return an error that says how the channel has ended."""
        cdef Pipe pipe = self.pipe
        if pipe.is_forked():
            return ForkedSystem(f"{self!r} is a copy: the channel's actors live in the process that made their system")
        if pipe.failure is not None:
            error = ChannelFailed(f"{self!r} has ended: {pipe.failed_by} has failed")
            error.__cause__ = pipe.failure
            return error
        if pipe.channel.is_cancelled():
            return ChannelCancelled(f"{self!r} was cancelled")
        return ChannelClosed(f"{self!r} is closed: {pipe.why()}")
