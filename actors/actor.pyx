"""The class that users subclass."""

import types
import weakref

cimport cython

from callboard._inside.answers.future cimport Future
from callboard._inside.life.unfinished cimport recall
from callboard._inside.sending.actor_cell cimport carrying_cell, cell_of
from callboard._inside.sending.ref cimport CLOSED, ActorRef, Envelope, Extra, no_system
from callboard._inside.sending.state cimport TimersOfActor, Watches
from callboard._inside.sending.stored_envelope cimport copy_of, sender_of
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.variables cimport current_variables

from callboard._inside.delayed_messages import tell_outcome, timed_tell
from callboard.core.errors import CallboardError
from callboard.core.handles import public_names
from callboard.core.text import safe_repr


# How many an actor watches until it checks which of them have ended.
cdef Py_ssize_t FEW_WATCHED = 64


cdef ActorRef own(actor):
    """Return the ref of an actor that lives in a system."""
    try:
        return <ActorRef?>actor._callboard_ref
    except AttributeError:
        raise no_system(actor) from None


@cython.binding(True)
class Actor:
    """An object with private state that handles one message at a time.

    Subclass it and define `receive(self, message)`, whose return value answers an ask. `async def receive` may await
    futures of other actors. While it waits, the worker runs other actors; this actor takes no other message, unless it
    was spawned with `concurrency`. If `receive_many(self, messages)` is defined, it gets a list of the waiting
    messages, up to the quantum, instead of one message at a time. Asks still go to `receive`.

    The object is created on the worker that runs it: `__init__` and all hooks run on a worker's thread, one at a time.
    Subclasses need not call `super().__init__()`.
    """

    # A Python class, not a `cdef class`: CPython 3.11 and 3.12 look the attributes of a C class's
    # subclasses up in a dictionary, at three times the cost. The slot's name is one that no subclass
    # will choose for an attribute of its own, as it may well choose `_ref`.
    __slots__ = ("_callboard_ref", "__weakref__")

    __class_getitem__ = classmethod(types.GenericAlias)
    __dir__ = public_names

    # --- hooks ----------------------------------------------------------------------------------------

    def on_start(self):
        """Run once before the first message, and again after each restart, on the worker's thread.

        It may be `async def`, like `receive`: messages wait until it has ended.
        """

    def on_stop(self):
        """Run when the actor has stopped, and on the old object at a restart, on the worker's thread.

        It may be `async def`: the actor ends, or restarts, once it has ended.
        """

    def on_failure(self, error, message):
        """Run on the worker's thread after handling `message` raised `error`, before the supervisor decides.

        `message` is None if `__init__` or a hook failed.
        """

    # --- identity and place ---------------------------------------------------------------------------

    @property
    def ref(self):
        """This actor's own ref. Pass it to others instead of `self`."""
        return own(self)

    @property
    def sender(self):
        """The ref of the actor that sent the current message; None if no actor did.

        Always None in `receive_many`, whose messages may have many senders.
        """
        cdef Envelope* in_work = cell_of(own(self)).in_work
        return sender_of(in_work) if in_work != NULL else None

    def is_wanted(self):
        """Return whether the answer to the current message is still needed. True for a message that was told.

        False if the asker has cancelled the ask, or if its timeout has passed.
        """
        cdef Envelope* in_work = cell_of(own(self)).in_work
        return in_work == NULL or in_work.reply_to == NULL or not (<Future>in_work.reply_to).flag.is_set()

    @property
    def system(self):
        """The actor's system."""
        return own(self).runtime.system

    def spawn(self, cls, /, *args, **kwargs):
        """Spawn a child: like `ActorSystem.spawn`, but it stops when this actor stops."""
        cdef ActorRef ref = own(self)
        return ref.runtime.spawner(ref, cls, args, kwargs)

    def stop(self):
        """Stop this actor after the current message."""
        cdef ActorRef ref = own(self)
        recall(ref)
        ref.send_system(SystemKind.stop, None, None)

    # --- behaviour ------------------------------------------------------------------------------------

    def become(self, handler):
        """Handle messages with `handler(message)`, from the next one until `unbecome()`."""
        cdef ActorRef ref = own(self)
        cdef Extra extra = ref.extras()
        if not callable(handler):
            raise TypeError(f"become() expects a callable that takes a message, got {safe_repr(handler)}")
        recall(ref)
        if extra.behaviours is None:
            extra.behaviours = []
        extra.behaviours.append((ref.handler, ref.bound))
        if ref.runtime.spans is not None and not ref.recipe.many:
            handler = ref.runtime.spans.around(ref, handler)
        ref.handler = handler
        ref.bound = True

    def unbecome(self):
        """Restore the handler from before the last `become()`.

        Raises CallboardError if there was none.
        """
        cdef ActorRef ref = own(self)
        if ref.extra is None or not ref.extra.behaviours:
            raise CallboardError(f"unbecome() in {ref._short_path}, which has no earlier handler")
        recall(ref)
        ref.handler, ref.bound = ref.extra.behaviours.pop()

    def stash(self):
        """Set the current message aside until `unstash_all()`. An ask stays unanswered until then.

        Raises CallboardError outside `receive`, and for a message that is already stashed.
        """
        cdef ActorRef ref = own(self)
        cdef Extra extra = ref.extras()
        cdef Envelope* in_work = cell_of(ref).in_work
        if in_work == NULL or in_work.stashed:
            raise CallboardError(f"stash() in {ref._short_path}, which is not handling a message")
        if extra.stash is None:
            extra.stash = []
        extra.stash.append(copy_of(in_work))
        in_work.stashed = True

    def unstash_all(self):
        """Handle the stashed messages next, in their order of arrival, before those in the mailbox."""
        cdef ActorRef ref = own(self)
        cdef Extra extra = ref.extra
        if extra is None or not extra.stash:
            return
        recall(ref)
        ref.put_back(extra.stash)
        extra.stash = None
        if ref.recipe.concurrency > 1:  # this may be a step on the event loop, and no dispatch that goes on
            ref.send_system(SystemKind.wake, None, None)

    # --- time -----------------------------------------------------------------------------------------

    def after(self, seconds, message, *, to=None, key=None):
        """Send `message` once, after `seconds`. Return a timer with `cancel()`.

        The timer ends when this actor stops or restarts.

        Args:
            to: The Recipient of the message; by default this actor.
            key: The new timer replaces this actor's timer with the same key. If a timer with a key was replaced or
                cancelled, a message that it has already sent to this actor is not handled: it becomes a dead letter,
                "cancelled".
        """
        return start_timer(own(self), seconds, None, message, to, key, False)

    def every(self, seconds, message, *, to=None, key=None, coalesce=False):
        """Send `message` every `seconds`. Return a timer with `cancel()`.

        The timer ends when this actor stops or restarts.

        Args:
            to: The Recipient of the messages; by default this actor.
            key: As for after().
            coalesce: Send no message while the last one waits or is being handled, so that a busy actor finds only one.
                Raises ValueError for a mailbox that drops messages.
        """
        return start_timer(own(self), seconds, seconds, message, to, key, coalesce)

    def cancel_timer(self, key):
        """Cancel this actor's timer with this key. Return False if no such timer is pending.

        A message that the timer has sent to this actor, and that still waits, is not handled either: see after().
        """
        cdef Extra extra = own(self).extra
        cdef TimersOfActor timers = None if extra is None else extra.timers
        timer = None if timers is None or timers.keyed is None else timers.keyed.pop(key, None)
        return timer is not None and timer.cancel()

    def pipe(self, future, *, to=None, wrap=None):
        """Tell the answer of `future` when it arrives. An error is sent as PipeFailed(error).

        Args:
            future: Anything that `Future.of()` takes, except plain values, which raise TypeError.
            to: The Recipient of the answer; by default this actor.
            wrap: Makes the message, `wrap(answer)`. It is called like a callback of a future.
        """
        cdef ActorRef ref = own(self)
        if to is None:
            refuse_task(ref)
            to = ref
        tell_outcome(future, to, wrap, variables_for(to))

    def sleep(self, seconds):
        """Return a Future that is done after `seconds`. Await it in an `async def receive`."""
        return own(self).runtime.timers.sleep(seconds)

    # --- others' ends ------------------------------------------------------------------------------------

    def watch(self, ref):
        """Send `Terminated(ref)` to this actor when the actor of `ref` stops, or now if it already has."""
        cdef ActorRef mine = own(self)
        cdef Watches watches = mine.extras().watches_now()
        if not isinstance(ref, ActorRef):
            raise TypeError(f"watch() expects the ref of an actor in this process, got {safe_repr(ref)}")
        refuse_task(mine)
        if watches.watching is None:
            watches.watching = {}
        watches.watching[ref] = None
        if len(watches.watching) > watches.most_watching:
            forget_ended(watches)
        (<ActorRef>ref).send_system(SystemKind.watch, mine, None)

    def unwatch(self, ref):
        """Undo `watch(ref)`."""
        cdef ActorRef mine = own(self)
        cdef Watches watches = mine.extra.watches if mine.extra is not None else None
        if watches is not None and watches.watching is not None and ref in watches.watching:
            watches.watching.pop(ref, None)
            (<ActorRef>ref).send_system(SystemKind.unwatch, mine, None)

    @property
    def children(self):
        """The refs of this actor's children, in the order in which they were spawned."""
        return own(self).children


cdef void forget_ended(Watches watches) noexcept:
    """Stop watching actors that have ended: they tell their watchers without being asked."""
    cdef ActorRef other
    for other in list(watches.watching):
        if other.phase == CLOSED:
            del watches.watching[other]
    watches.most_watching = max(FEW_WATCHED, 2 * len(watches.watching))


cdef int refuse_task(ActorRef ref) except -1:
    """Raise TypeError for a message that would come to a task."""
    if ref.recipe.runs:
        raise TypeError(f"{ref._short_path} is a task, and takes no messages: see `docs/channels.md`")
    return 0


cdef object variables_for(to):
    """Return the context variables that a message goes to a receiver with, or None."""
    if isinstance(to, ActorRef) and (<ActorRef>to).cell.has(carrying_cell):
        return current_variables()
    return None


cdef object start_timer(ActorRef ref, seconds, period, message, to, key, coalesce):
    cdef Extra extra = ref.extras()
    cdef TimersOfActor timers
    hash(key)
    if to is None:
        refuse_task(ref)
        to = ref
    cdef bint is_own = key is not None and to is ref and not ref.recipe.native
    action = timed_tell(to, message, variables_for(to), coalesce)
    if extra.timers is None:
        extra.timers = TimersOfActor.__new__(TimersOfActor)
    timers = extra.timers
    if is_own and timers.keyed is None:
        timers.keyed = weakref.WeakValueDictionary()  # a message that waits has its timer
        ref.detour = True
    timer = ref.runtime.timers.call_after(seconds, action, period, with_timer=is_own)
    if timers.all is None:
        timers.all = weakref.WeakSet()  # the system holds those that are to come
    timers.all.add(timer)
    if key is not None:
        if timers.keyed is None:
            timers.keyed = weakref.WeakValueDictionary()
        replaced = timers.keyed.pop(key, None)
        timers.keyed[key] = timer
        if replaced is not None:
            replaced.cancel()
    return timer
