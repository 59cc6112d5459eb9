"""Routers to one ref at a time: in turn, to the least loaded, or by key.

A router chooses in the sender's thread, and counts the senders that are at it.

A message is chosen for a routee and handed over in two steps. Between them another thread may remove the routee. So
a routee counts the messages that are chosen for it, and it is told to stop, after its queue, when it is removed and
none is left. No message can come behind that, and so none is lost by a resize.

The critical section does nothing where there is an interpreter lock: no Python code runs inside it.
"""

import types
from functools import partial

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint64_t

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.envelope cimport to_tell
from callboard._inside.sending.native_ref cimport NativeRef
from callboard._inside.sending.ref cimport STOPPING, SUSPENDED, ActorRef
from callboard.core.asserting cimport holds
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context, current_context

from callboard._inside.answers.combined import gather
from callboard.core.errors import CallboardError
from callboard.core.handles import public_names
from callboard.rows.batches import iterator_over
from callboard.recipient import atell_many_to, atell_to, checked_recipients, together

cdef extern from "callboard/routers/jump_hash.hpp" namespace "callboard" nogil:
    int64_t jump_hash(uint64_t key, int64_t places)

# How many messages of tell_many() are divided among the routees at a time.
cdef Py_ssize_t PORTION = 256


cdef class Routee:
    """One of the recipients that a router chooses from, and how much is on its way to it."""

    def __init__(self, recipient):
        self.recipient = recipient
        self.ref = recipient if isinstance(recipient, ActorRef) else None
        self.is_native = isinstance(recipient, NativeRef)

    @cython.nonecheck(False)
    cdef bint has_ended(self) noexcept:
        return self.ref is not None and self.ref.phase >= STOPPING

    @cython.nonecheck(False)
    cdef Py_ssize_t load(self) noexcept:
        """Return how many messages it has before it, as far as they are counted."""
        cdef ActorRef ref = self.ref
        cdef Py_ssize_t load = self.messages
        if ref is None or ref.cell.limits == NULL:
            load += self.asks
        else:
            load += ref.cell.limits.count()
        if ref is not None and (ref.phase == SUSPENDED or not ref.cell.tail.is_idle()):
            load += 1  # it is in the middle of one
        return load


@cython.nonecheck(False)
cdef inline int hand_to(Routee routee, message) except -1:
    """Send a message to a routee, as the `tell` of its recipient."""
    cdef Context* context
    cdef Cell* current
    cdef PyObject* sender = NULL
    if routee.ref is None:
        routee.recipient.tell(message)
        return 0
    context = current_context()
    if routee.is_native:
        return routee.ref.send_slowly(to_tell(<PyObject*>message, NULL), context)
    current = context.current
    if current != NULL:
        sender = <PyObject*>current.owner
    return routee.ref.send(to_tell(<PyObject*>message, sender), context)


@cython.nonecheck(False)
cdef inline int leave(Router router, Routee routee, Py_ssize_t messages) except -1:
    """Count messages out that were chosen for a routee."""
    cdef bint is_last
    assert holds(routee.messages >= messages)
    with cython.critical_section(router):
        routee.messages -= messages
        is_last = routee.removed and routee.messages == 0
    if is_last:
        routee.recipient.stop(after_queue=True)
    return 0


cdef class Router:
    """The base of routers: each stands for several recipients, its routees. Thread-safe."""

    def __dir__(self):
        return public_names(self)

    _counts = False  # whether the mailboxes of the actors that it spawns are to count their messages

    def __cinit__(self, *_, **__):
        self.routees = ()

    def __init__(self, refs):
        self.routees = tuple([Routee(ref) for ref in checked_recipients(type(self).__name__, refs)])

    __class_getitem__ = classmethod(types.GenericAlias)

    @classmethod
    def spawn(cls, spawner, actor, /, *args, routees=None, elastic=None, name=None, **kwargs):
        """Spawn `routees` actors of the class `actor`, and return a router over them.

        An actor that ends is replaced. Raises like `system.spawn()`.

        Args:
            spawner: A system, or the actor that is to be their grandparent.
            actor: The class of the actors.
            *args: Arguments of each actor.
            routees: The number of actors. With `elastic` it is the initial number, within the bounds; by default the
                lower one.
            elastic: An AutoScale, or a pair of the smallest and the largest number.
            name: The name of their parent.
            **kwargs: Arguments and options of each actor, as for `system.spawn()`. The default `supervision` is
                "restart".
        """
        from callboard.routers.family import spawn_family

        return spawn_family(cls, spawner, actor, args, kwargs, routees, elastic, name, cls._counts)

    # --- for subclasses -----------------------------------------------------------------------------

    cdef uint64_t key_of(self, message) except? 0:
        """Return the hash of a message's key, where that decides. Outside the critical section."""
        return 1

    cdef Routee pick(self, uint64_t key):
        """Return the routee for a message. In the critical section, where `routees` stays as it is."""
        raise NotImplementedError

    cdef int note_asked(self, Routee routee, future) except -1:
        """Take note of an ask, where a subclass counts them."""
        return 0

    # --- sending ------------------------------------------------------------------------------------

    @cython.always_allow_keywords(False)
    def tell(self, message, /):
        """Send `message` to one of the routees. Waits and raises like its `tell`."""
        cdef Routee routee = self.enter(message)
        try:
            hand_to(routee, message)
        finally:
            leave(self, routee, 1)

    def tell_many(self, messages):
        """Send each of `messages` to one of the routees, some hundred at a time.

        A routee without room blocks the sender. If one raises, the others still get their part, and then the first
        error is raised. If the iterable raises, the messages before that are sent.
        """
        cdef dict parts = {}
        cdef Py_ssize_t count
        try:
            for count, message in enumerate(iterator_over("tell_many()", messages, "messages"), 1):
                self.assign(parts, message)
                if count % PORTION == 0:
                    self.hand_over(parts)
        finally:
            self.hand_over(parts)

    def atell(self, message):
        """Send `message` as soon as the chosen routee accepts it. Return a future that is done then.

        A recipient without `atell` is told immediately.
        """
        cdef Routee routee = self.enter(message)
        try:
            told = atell_to(routee.recipient, message)
        except BaseException:
            leave(self, routee, 1)
            raise
        told.add_done_callback(partial(self._leave_later, routee, 1))
        return told

    def atell_many(self, messages):
        """Send each of `messages` as soon as its routee accepts it. Return one future for all.

        It fails with the first that fails.
        """
        cdef dict parts = {}
        cdef list told = []
        try:
            for message in iterator_over("atell_many()", messages, "messages"):
                self.assign(parts, message)
        finally:
            while parts:
                routee, part = parts.popitem()
                try:
                    sent = atell_many_to((<Routee>routee).recipient, part)
                except BaseException:
                    leave(self, routee, len(part))
                    for other, left in parts.items():
                        leave(self, other, len(left))
                    raise
                sent.add_done_callback(partial(self._leave_later, routee, len(part)))
                told.append(sent)
        return together(told)

    def ask(self, message, timeout=None):
        """Ask one of the routees, and return the future of its answer."""
        cdef Routee routee = self.enter(message)
        try:
            future = routee.recipient.ask(message, timeout)
            self.note_asked(routee, future)
        finally:
            leave(self, routee, 1)
        return future

    cdef inline Routee enter(self, message):
        cdef uint64_t key = self.key_of(message)
        cdef Routee routee
        with cython.critical_section(self):
            self.check_made()
            routee = self.pick(key)
            routee.messages += 1
        return routee

    cdef inline int check_made(self) except -1:
        if len(self.routees) == 0:
            raise RuntimeError(f"a {type(self).__name__} has no refs before its __init__()")
        return 0

    cdef int assign(self, dict parts, message) except -1:
        cdef Routee routee = self.enter(message)
        part = parts.get(routee)
        if part is None:
            parts[routee] = [message]
        else:
            (<list>part).append(message)
        return 0

    cdef int hand_over(self, dict parts) except -1:
        error = None
        try:
            for routee, part in parts.items():
                try:
                    (<Routee>routee).recipient.tell_many(part)
                except Exception as raised:
                    error = raised if error is None else error
        finally:
            for routee, part in parts.items():
                leave(self, routee, len(part))
            parts.clear()
        if error is not None:
            raise error
        return 0

    def _leave_later(self, Routee routee not None, Py_ssize_t messages, _=None):
        leave(self, routee, messages)

    def _enter_all(self):
        """Return all routees, and count a message for each, until _leave_all()."""
        cdef Routee routee
        with cython.critical_section(self):
            self.check_made()
            routees = self.routees
            for routee in routees:
                routee.messages += 1
        return routees

    def _leave_all(self, routees):
        for routee in routees:
            self._leave_later(routee, 1)

    # --- the routees --------------------------------------------------------------------------------

    @property
    def refs(self):
        """The recipients, in order."""
        return tuple([(<Routee>routee).recipient for routee in self.routees_now()])

    @property
    def parent(self):
        """The ref of the parent of the router's actors; None if the router was given its refs."""
        return self._family.parent if self._family is not None else None

    @property
    def ready(self):
        """A Future that answers with this router once all current routees have started.

        It fails with the first that fails to start: see `ActorRef.ready`. Raises AttributeError for routees in other
        processes.
        """
        return gather(*[ref.ready for ref in self.refs]).map(lambda _: self)

    @property
    def ended(self):
        """A Future that answers with a tuple of ActorEnds once all current routees have ended.

        Later routees do not count. Raises AttributeError for routees in other processes.
        """
        cdef Future ended = gather(*[ref.ended for ref in self.refs]).map(tuple)
        ended.is_rest = True  # to wait for an end is to wait for input
        return ended

    def resize(self, routees):
        """Change the number of routees: spawn more, or remove the latest.

        A removed actor handles the messages already sent to it, then stops. Raises CallboardError if the router was
        given its refs, or was stopped, and ValueError for a number below 1.
        """
        if self._family is None:
            raise CallboardError(f"this {type(self).__name__} was given its refs: only spawned routees can be resized")
        self._family.resize(routees)

    def stop(self, *, after_queue=False):
        """Stop the actor behind each ref. See `ref.stop()`.

        Raises TypeError if a recipient cannot be stopped, such as one in another process.
        """
        if self._family is not None:
            self._family.stop(after_queue)
            return
        refs = self.refs
        for ref in refs:
            if not hasattr(ref, "stop"):
                raise TypeError(f"{ref!r} cannot be stopped from here")
        for ref in refs:
            ref.stop(after_queue=after_queue) if after_queue else ref.stop()

    cdef tuple routees_now(self):
        with cython.critical_section(self):
            self.check_made()
            routees = self.routees
        return routees

    def _set_refs(self, refs):
        """Have these refs from now on, and stop the actors that are not among them. One thread at a time."""
        cdef dict known = {(<Routee>routee).recipient: routee for routee in self.routees_now()}
        cdef tuple routees = tuple([known.pop(ref, None) or Routee(ref) for ref in refs])
        cdef list unused = []
        cdef Routee routee
        with cython.critical_section(self):
            self.routees = routees  # first: from here on none is chosen that was removed
            for routee in known.values():
                routee.removed = True
                if routee.messages == 0:
                    unused.append(routee.recipient)
        for ref in unused:
            ref.stop(after_queue=True)

    # --- being --------------------------------------------------------------------------------------

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} has refs, which cannot be pickled")

    def __repr__(self):
        where = "" if self._family is None else f" {self.parent.path}"
        return f"<{type(self).__name__}{where} over {len(self.routees)} refs>"


cdef class RoundRobinRouter(Router):
    """Sends each message to the next of its refs, in turn. Thread-safe.

    A message goes directly to the chosen ref, without an actor in between. Each ref handles the messages of one sender
    in the order in which they were sent; there is no order between refs. An actor that has ended is skipped.
    """

    cdef Py_ssize_t turn

    @cython.final
    @cython.nonecheck(False)
    cdef inline Routee next_routee(self):
        cdef tuple routees = self.routees
        cdef Py_ssize_t tries = PyTuple_GET_SIZE(routees)
        cdef Py_ssize_t turn = self.turn
        cdef Routee routee
        if tries == 0:
            self.check_made()
        while True:
            if turn >= PyTuple_GET_SIZE(routees):
                turn = 0
            routee = <Routee>PyTuple_GET_ITEM(routees, turn)
            turn += 1
            tries -= 1
            if tries == 0 or routee.ref is None or routee.ref.phase < STOPPING:
                self.turn = turn
                return routee

    cdef Routee pick(self, uint64_t key):
        return self.next_routee()

    @cython.always_allow_keywords(False)
    def tell(self, message, /):
        """Send `message` to the next ref. Waits and raises like its `tell`."""
        # As Router.tell(), without calls through tables: half of the time that the router takes.
        cdef Routee routee
        with cython.critical_section(self):
            routee = self.next_routee()
            routee.messages += 1
        try:
            hand_to(routee, message)
        finally:
            leave(self, routee, 1)


cdef class LeastLoadedRouter(Router):
    """Sends each message to the ref with the fewest waiting messages, and to equal ones in turn.

    Messages are counted in the mailbox, if it counts them: that of an actor spawned by the router, a bounded or
    prioritised one, or any under monitoring. Otherwise they are this router's unanswered asks, plus one for an actor of
    this process that is working. Order and thread safety are those of RoundRobinRouter.
    """

    _counts = True

    cdef Py_ssize_t turn

    cdef Routee pick(self, uint64_t key):
        cdef tuple routees = self.routees
        cdef Py_ssize_t count = len(routees)
        cdef Py_ssize_t at = self.turn % count
        cdef Py_ssize_t best = at
        cdef Py_ssize_t least = -1
        cdef Py_ssize_t load
        cdef Routee routee
        for _ in range(count):
            routee = <Routee>routees[at]
            if not routee.has_ended():
                load = routee.load()
                if least < 0 or load < least:
                    least = load
                    best = at
                    if load == 0:
                        break
            at += 1
            if at == count:
                at = 0
        self.turn = best + 1
        return <Routee>routees[best]

    cdef int note_asked(self, Routee routee, future) except -1:
        with cython.critical_section(self):
            routee.asks += 1
        future.add_done_callback(partial(self._note_answer, routee))
        return 0

    def _note_answer(self, Routee routee, _):
        with cython.critical_section(self):
            routee.asks -= 1


cdef class KeyRouter(Router):
    """Sends each message to the ref that has its key. Thread-safe.

    Messages from one sender with the same key are handled in order, as long as the number of refs does not change. A
    key has the same place in every process. When the number of refs grows to n, one key in n moves to the new one. A
    message that is sent after a resize may be handled before messages that still wait at the key's previous ref.
    """

    cdef object hash_of_row

    def __init__(self, refs, by):
        """`by` is a field's name, several names, or a function of the message. Raises ConfigError for anything else."""
        from callboard.remote.sharding.keys import ShardKey

        Router.__init__(self, refs)
        self.hash_of_row = ShardKey(by, 1).hash_of_row

    @classmethod
    def spawn(cls, spawner, actor, /, *args, by, routees=None, elastic=None, name=None, **kwargs):
        """Like `Router.spawn`, with `by` as for KeyRouter(). An actor's replacement takes over its keys."""
        from callboard.routers.family import spawn_family

        return spawn_family(partial(cls, by=by), spawner, actor, args, kwargs, routees, elastic, name, False, by=by)

    def of_key(self, key):
        """Return the ref of a key. Raises CodecError for an invalid key."""
        from callboard.remote.sharding.key_hash import key_hash

        routees = self.routees_now()
        return (<Routee>routees[jump_hash(key_hash(key), len(routees))]).recipient

    cdef uint64_t key_of(self, message) except? 0:
        return self.hash_of_row(message)

    cdef Routee pick(self, uint64_t key):
        return <Routee>self.routees[jump_hash(key, len(self.routees))]
