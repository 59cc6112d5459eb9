"""The part of a channel between its ends: the ring of values, the queues of waits, and its end."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.thread_locals cimport actor_context
from callboard._inside.sending.ref cimport ActorRef
from callboard.channels.object_channel cimport (
    ObjectChannel, ObjectOrdering, PyTypeObject, Transfer, inquiry, traverse, traverseproc, visitproc,
)
from callboard.core.asserting cimport holds

from callboard.channels.errors import ChannelOwnershipError
from callboard.core.log import log

cdef object numbering = object()
cdef int64_t last_number = 0

ObjectOrdering.prepare()  # at import, when there are few threads


cdef class Line:
    """A queue of users that wait."""

    cdef bint is_input(self) noexcept:
        """Whether they wait for input only, without a value to pass on."""
        return not self.sends

    cdef bint join(self, object wait) except -1:
        """Begin to wait. False: the operation can be done now."""
        raise NotImplementedError

    cdef void leave(self, object wait) noexcept:
        """Stop waiting."""
        pass


cdef class Watch:
    """The place of a selection in an end's queue."""

    cdef void wake(self) noexcept:
        pass


cdef void wake(object wait) noexcept:
    if isinstance(wait, Future):
        if (<Future>wait).complete(None, None):
            actor_context().woken += 1
    else:
        (<Watch>wait).wake()


cdef class ChannelSide(Line):
    """The users of one side's ends that wait, in the order in which they began.

    The side is announced to the other one while there are waits. The other side wakes the first one, which announces
    the side for the next one.
    """

    def __cinit__(self, Pipe pipe, bint sends):
        self.pipe = <void*>pipe
        self.sends = sends
        self.waiter = &pipe.channel.waiting_senders if sends else &pipe.channel.waiting_receivers
        self.ends = 1
        self.users = []

    cdef bint join(self, object wait) except -1:
        cdef bint has_joined = True
        with cython.critical_section(self):
            assert holds(wait not in self.waits())
            if self.first is not None:
                if self.others is None:
                    self.others = []
                self.others.append(wait)
            elif self.announce():
                self.first = wait
            else:
                has_joined = False
        (<Pipe>self.pipe).wake_noted()
        return has_joined

    cdef void leave(self, object wait) noexcept:
        """Stop waiting. If this wait was woken already, wake the next one instead."""
        cdef bint was_woken = False
        with cython.critical_section(self):
            if self.first is wait:
                self.advance()
                if self.first is None:
                    self.withdraw()
            elif self.others is not None and wait in self.others:
                self.others.remove(wait)
            else:
                was_woken = True
        if was_woken and self.first is not None:
            self.wake_next()

    cdef object advance(self):
        """Remove the first wait."""
        first = self.first
        self.first = self.others.pop(0) if self.others else None
        return first

    cdef list waits(self):
        """Return the waits in order."""
        if self.first is None:
            return []
        return [self.first, *self.others] if self.others else [self.first]

    cdef bint has(self, object end) noexcept:
        """Whether the user of `end` waits."""
        with cython.critical_section(self):
            for wait in self.waits():
                if wait.end is end:
                    return True
        return False

    cdef bint is_waited_at(self) noexcept:
        return self.first is not None

    cdef void wake_next(self) noexcept:
        """Wake the first wait, and those behind it, while there is something to do."""
        cdef bint again = True
        while again:
            with cython.critical_section(self):
                if self.first is None:
                    return
                wait = self.advance()
                if self.first is not None:
                    again = not self.announce()
                else:
                    again = False
                    self.withdraw()
            wake(wait)
            (<Pipe>self.pipe).wake_noted()

    cdef void wake_all(self) noexcept:
        """Wake all waits, which try again."""
        for wait in self.dissolve():
            wake(wait)

    cdef list dissolve(self):
        """End all waits, and return them."""
        with cython.critical_section(self):
            line = self.waits()
            self.first = self.others = None
            self.withdraw()
        return line

    cdef bint announce(self) noexcept:
        """Ask the other side for a wake-up. False: there is something to do already."""
        cdef ObjectChannel* channel = (<Pipe>self.pipe).channel
        return (channel.sending() if self.sends else channel.receiving()).announce(self.waiter)

    cdef void withdraw(self) noexcept:
        cdef ObjectChannel* channel = (<Pipe>self.pipe).channel
        (channel.sending() if self.sends else channel.receiving()).withdraw(self.waiter)


cdef class Pipe:
    """The part of a channel that its ends share.

    Each side's users take turns, by the interpreter's lock or the side's critical section. So the native channel has
    one sender and one receiver at a time, whatever the number of ends.
    """

    def __cinit__(self, int64_t capacity, bint grows):
        global last_number
        self.channel = new ObjectChannel(capacity)
        self.is_rendezvous = capacity == 0
        self.grows = grows
        self.senders = ChannelSide.__new__(ChannelSide, self, True)
        self.receivers = ChannelSide.__new__(ChannelSide, self, False)
        with cython.critical_section(numbering):
            last_number += 1
            self.number = last_number

    def __dealloc__(self):
        if self.channel != NULL:
            self.empty()  # its receivers have dropped the rest
            del self.channel

    cdef void wake_noted(self) noexcept:
        """Wake the sides that the last call of the channel made ready. Not in a critical section."""
        self.wake_receivers()
        self.wake_senders()

    cdef inline void wake_senders(self) noexcept:
        if self.channel.waiting_senders.take_note():
            self.senders.wake_next()

    cdef inline void wake_receivers(self) noexcept:
        if self.channel.waiting_receivers.take_note():
            self.receivers.wake_next()

    cdef int join_system(self, ActorRef ref) except -1:
        """Note the system of an actor that begins to use an end. Raises ChannelOwnershipError for a second system."""
        if self.runtime is None:
            self.runtime = ref.runtime
        elif self.runtime is not ref.runtime:
            raise ChannelOwnershipError(
                f"channel {self.number} belongs to the actor system {self.runtime.name!r}, and "
                f"{ref._short_path} is an actor of another one, {ref.runtime.name!r}")
        return 0

    # --- values ---------------------------------------------------------------------------------------

    cdef bint try_put(self, object value) except -1:
        """Put `value` in, if there is room; at capacity 0, if a receiver waits."""
        cdef bint done
        with cython.critical_section(self.senders):
            Py_INCREF(value)
            done = self.channel.send_nowait(<PyObject*>value) == Transfer.done
            assert holds(self.senders.ends > 0 or not done)
            if done and self.is_rendezvous:
                self.offers += 1
                self.is_offered = False  # the slot has this value: the offer before it was taken
        if not done:
            Py_DECREF(value)
        self.wake_receivers()
        return done

    cdef bint take(self, PyObject** value) noexcept:
        """Take the next value, as a new reference. False: there is none, and `value` is unchanged."""
        cdef bint done
        with cython.critical_section(self.receivers):
            done = self.channel.receive_nowait(value[0]) == Transfer.done
        if done:
            self.wake_senders()
        return done

    cdef object try_take(self, object nothing):
        """Take the next value, or return `nothing`."""
        cdef PyObject* value = NULL
        if not self.take(&value):
            return nothing
        taken = <object>value
        Py_DECREF(taken)
        return taken

    cdef object look(self, object nothing):
        """Return the next value without taking it, or `nothing`."""
        cdef PyObject* value = NULL
        with cython.critical_section(self.receivers):
            found = <object>value if self.channel.peek(value) else nothing
        return self.look_into_slot(nothing) if found is nothing and self.is_rendezvous else found

    cdef object look_into_slot(self, object nothing):
        """At capacity 0: return a value that try_put() gave to a receiver that has not taken it, or `nothing`."""
        cdef PyObject* value = NULL
        found = nothing
        with cython.critical_section(self.senders, self.receivers):
            if not self.is_offered and self.channel.peek_slot(value):
                found = <object>value
        return found

    cdef int64_t offer(self, object value) except -1:
        """At capacity 0: offer `value`, if no other offer waits. Return its number, or 0."""
        cdef int64_t number = 0
        cdef bint is_free
        with cython.critical_section(self.senders):
            Py_INCREF(value)
            is_free = not self.is_offered or self.channel.read() >= self.offers
            if is_free and self.channel.offer(<PyObject*>value) == Transfer.done:
                self.offers += 1
                self.is_offered = True
                assert holds(self.is_rendezvous and self.offers >= self.channel.read())
                number = self.offers
        if number == 0:
            Py_DECREF(value)
        self.wake_noted()
        return number

    cdef bint was_taken(self, int64_t offer) noexcept:
        assert holds(offer > 0 and (offer <= self.offers or not self.is_rendezvous))
        cdef bint taken = self.channel.read() >= offer
        if taken:
            with cython.critical_section(self.senders):
                if self.is_offered and offer == self.offers:  # no other one since
                    self.channel.taken()
                    self.is_offered = False
        return taken

    cdef bint retract(self, int64_t offer) except -1:
        """Take an offer back. False: a receiver has taken it."""
        cdef PyObject* value = NULL
        cdef bint is_back
        with cython.critical_section(self.senders):
            is_back = self.channel.read() < offer and self.channel.retract(value)
            if is_back:
                assert holds(self.is_rendezvous and offer == self.offers)  # no other one since
                self.offers -= 1
                self.is_offered = False
        if is_back:
            Py_DECREF(<object>value)
        if self.senders.is_waited_at():
            self.senders.wake_next()  # it has the slot
        return is_back

    # --- states ---------------------------------------------------------------------------------------

    cdef bint has_room(self) noexcept:
        cdef bint found
        with cython.critical_section(self.senders):
            found = self.channel.send_ready()
        return found

    cdef bint has_values(self) noexcept:
        cdef bint found
        with cython.critical_section(self.receivers):
            found = self.channel.receive_ready()
        return found

    cdef bint takes_values(self) noexcept:
        return not self.channel.has_ended()

    cdef bint is_over(self) noexcept:
        """Whether nothing more comes out."""
        if self.channel.is_cancelled() or not self.channel.has_ended():
            return self.channel.is_cancelled()
        return self.channel.size() == 0 and not (self.is_rendezvous and self.look_into_slot(None) is not None)

    cdef bint is_forked(self) noexcept:
        """Whether this is a copy, in a forked child, of a channel that actors used."""
        return self.runtime is not None and self.runtime.forked

    def why(self):
        """Describe how the channel has ended."""
        if self.channel.is_cancelled():
            return "it was cancelled"
        return "all senders have ended" if self.channel.is_sender_closed() else "all receivers have ended"

    # --- ends -----------------------------------------------------------------------------------------

    cdef void add_end(self, ChannelSide side) noexcept:
        with cython.critical_section(side):
            assert holds(side.ends > 0)  # of which one makes another
            side.ends += 1

    cdef void end_sender(self, object failure, str failed_by) noexcept:
        """End a sender, by the `failure` of its user `failed_by` if that is not None."""
        cdef bint last
        with cython.critical_section(self.senders):
            self.senders.ends -= 1
            assert holds(self.senders.ends >= len(self.senders.users))
            last = self.senders.ends == 0
            if failure is not None and self.failure is None:
                self.failure, self.failed_by = failure, failed_by
        if last:
            self.channel.close_sender()
            self.receivers.wake_all()
            self.wake_noted()

    cdef void end_receiver(self) noexcept:
        """End a receiver, which may still take the values that are there."""
        cdef bint last
        with cython.critical_section(self.receivers):
            self.receivers.ends -= 1
            assert holds(self.receivers.ends >= len(self.receivers.users))
            last = self.receivers.ends == 0
        if last:
            self.channel.close_receiver()
            self.senders.wake_all()
            self.receivers.wake_all()
            self.wake_noted()

    cdef void leave_receiver(self, bint is_closed, str reason, object receiver) noexcept:
        """End a receiver for good. After the last one, the rest of the values become dead letters."""
        if not is_closed:
            self.end_receiver()
        if self.receivers.ends == 0:
            self.drop(reason, receiver)

    cdef void cancel(self, str reason, object receiver) noexcept:
        if self.channel.cancel():
            self.senders.wake_all()
            self.receivers.wake_all()
            self.wake_noted()
        self.drop(reason, receiver)

    cdef void drop(self, str reason, object receiver) noexcept:
        """Make dead letters of the values in the channel, except an offer, which its sender takes back."""
        cdef PyObject* value = NULL
        cdef bint done
        cdef int64_t lost = 0
        while True:
            with cython.critical_section(self.senders, self.receivers):
                done = not self.is_offered and self.channel.take_left(value)
            self.wake_noted()
            if not done:
                break
            dropped = <object>value
            Py_DECREF(dropped)
            lost += 1
            if self.runtime is not None and not self.runtime.forked:
                try:
                    self.runtime.dead_letters.post(dropped, receiver, None, reason)
                except BaseException as error:
                    log.error("a dead letter could not be delivered", channel=self.number, exc_info=error)
        if lost and self.runtime is None:
            log.warning("values of a channel were dropped", channel=self.number, reason=reason, count=lost)

    cdef void grow(self) noexcept:
        """Double the room, and wake the sender. The users of both sides are suspended."""
        with cython.critical_section(self.senders, self.receivers):
            self.is_rendezvous = self.is_offered = False  # an offered value is in the ring then
            assert holds(self.grows)
            self.channel.grow(max(2 * self.channel.capacity(), 1))
        self.wake_noted()

    cdef void empty(self) noexcept:
        """Release all values. The channel is not used any more."""
        cdef PyObject* value = NULL
        while self.channel.take_left(value):
            Py_DECREF(<object>value)


# --- for the cyclic collector, which sees the attributes of objects, but not into a ring ----------------------

cdef traverseproc traverse_attributes = (<PyTypeObject*>Pipe).tp_traverse
cdef inquiry clear_attributes = (<PyTypeObject*>Pipe).tp_clear


cdef int traverse_all(PyObject* pipe, visitproc visit, void* arg) noexcept nogil:
    cdef int given = traverse_attributes(pipe, visit, arg)
    cdef ObjectChannel* channel = (<Pipe>pipe).channel
    if given != 0 or channel == NULL:
        return given
    return traverse(channel[0], visit, arg)


cdef int clear_all(PyObject* pipe) noexcept:
    if (<Pipe>pipe).channel != NULL:
        (<Pipe>pipe).empty()
    return clear_attributes(pipe)


(<PyTypeObject*>Pipe).tp_traverse = traverse_all
(<PyTypeObject*>Pipe).tp_clear = clear_all
