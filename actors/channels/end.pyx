"""What both ends of a channel have in common: each belongs to one user at a time."""

import threading
import types

cimport cython

from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.forward cimport Cell
from callboard.scheduling.handle cimport actor_here

from callboard.channels.errors import ChannelCancelled, ChannelClosed, ChannelFailed, ChannelMisuse


cdef void hold(ActorRef ref, ChannelEnd end) noexcept:
    """Have `end` end with the actor `ref`, which runs here."""
    if ref.extras().held is None:
        ref.extra.held = set()
    ref.extra.held.add(end)


cdef class ChannelEnd:
    """A sender or a receiver.

    An end belongs to the actor, the thread or the event loop that uses it first, until `hand_on()`. An actor's ends
    end with it.
    """

    __class_getitem__ = classmethod(types.GenericAlias)

    @property
    def capacity(self):
        """How many values the channel has room for."""
        return self.pipe.channel.capacity()

    @property
    def number(self):
        """The channel's number in this process, counted from 1."""
        return self.pipe.number

    @property
    def is_closed(self):
        """True once an operation can only raise ChannelClosed."""
        return self.spent or self.is_done()

    def __len__(self):
        return self.pipe.channel.size()

    def __bool__(self):
        return True  # an end is an end, though no value waits

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"{self!r} cannot be pickled: a channel lives in one process")

    def __repr__(self):
        state = "closed" if self.is_closed else f"{len(self)} of {self.capacity}"
        whose = f", of {self.user_name}" if self.user_name is not None else ""
        return f"<{type(self).__name__} of channel {self.pipe.number}: {state}{whose}>"

    def hand_on(self):
        """Let another actor or thread use this end: it belongs to the next one that does. Return the end.

        Raises ChannelMisuse if somebody waits at it just now.
        """
        if self.side().has(self):
            raise ChannelMisuse(f"{self!r} cannot be handed on while {self.user_name} waits at it")
        self.leave_holder(None)
        self.user = NULL
        self.user_name = None
        self.owner = None
        self.set_known(None)
        return self

    cdef ChannelSide side(self):
        raise NotImplementedError

    cdef inline int use(self) except -1:
        """Raise ChannelMisuse if the end is another's. The first user becomes its owner."""
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef void* user = <void*>context if current == NULL else <void*>current
        if self.user != user:
            self.bind(context, user)
        return 0

    cdef int bind(self, Context* context, void* user) except -1:
        cdef ActorRef ref = None
        name = f"the thread {threading.current_thread().name!r}"
        if context.current != NULL:
            ref = <ActorRef>actor_here()
            name = ref._short_path
        if self.spent:
            raise ChannelMisuse(f"{self!r} was given to replace(): use the end that it replaces")
        if self.user != NULL:
            raise ChannelMisuse(f"{self!r} is used by {name}: hand it on first, with hand_on()")
        if ref is not None:
            self.pipe.join_system(ref)
            hold(ref, self)
        self.leave_holder(ref)
        self.user_name = name
        self.owner = ref
        self.user = user
        self.set_known(None if self.closed else ref)
        return 0

    cdef void set_known(self, ActorRef ref) noexcept:
        """Note in the side that the end belongs to the actor `ref`; None: to none, or that it is closed."""
        cdef ChannelSide side = self.side()
        with cython.critical_section(side):
            if self.known is not None:
                side.users.remove(self.known)
            self.known = ref
            if ref is not None:
                side.users.append(ref)

    cdef void claim(self, object task) noexcept:
        # As good as used, until another one uses it: the task may wait long before it does.
        cdef ActorRef ref = <ActorRef>task
        if self.user == NULL and not self.closed and not self.spent and (
                self.pipe.runtime is None or self.pipe.runtime is ref.runtime):
            hold(ref, self)
            self.leave_holder(ref)
            self.pipe.runtime = ref.runtime
            self.user_name = ref._short_path
            self.set_known(ref)

    cdef void leave_holder(self, ActorRef ref) noexcept:
        """The end does not end any more with the actor that it belonged to, unless that is `ref`."""
        cdef ActorRef holder = self.known if self.owner is None else self.owner
        if holder is not None and holder is not ref and holder.extra is not None:
            held = holder.extra.held
            if held is not None:
                held.discard(self)

    cdef bint is_ready(self) noexcept:
        """Whether an operation of this end would find something to do."""
        return True

    cdef bint is_done(self) noexcept:
        """Whether nothing more can go in or come out here."""
        return self.closed

    cdef object closing(self):
        """Return the error that says how the other side has ended the channel."""
        cdef Pipe pipe = self.pipe
        if pipe.failure is not None:
            error = ChannelFailed(f"{self!r} has come to its end: {pipe.failed_by} has failed")
            error.__cause__ = pipe.failure
            return error
        if pipe.channel.is_cancelled():
            return ChannelCancelled(f"{self!r} was cancelled")
        return ChannelClosed(f"{self!r} is closed: {pipe.why()}")
