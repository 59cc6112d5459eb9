"""An actor's identity and state, and the views that others have of them."""

import time
import types
from collections import deque

cimport cython

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.pending_asks cimport circle
from callboard._inside.sending.actor_cell cimport closed_cell, forked_cell, native_cell, sampled_cell, task_cell
from callboard._inside.sending.overflow cimport Overflow
from callboard.core.asserting cimport holds
from callboard.scheduling.cell cimport recorded_cell

from callboard._inside.answers.wait_cause import ActorInfo, WaitCause, WaitTarget
from callboard.core.markup import table
from callboard.scheduling.monitor import ActorStatistics

# How many names of a path a text has. A path through thousands of levels helps nobody, and
# thousands of them, as when the tree stops, take seconds.
cdef int MOST_NAMES = 50


cdef class Recipe:
    """The recipe of an actor: its class, its arguments, its options."""

    def __reduce__(self):
        # A class that is pickled by value, as Spark's are, takes its attributes along: this one is
        # found anew where the class arrives.
        return type(None), ()


cdef class Watches:
    """The watchers of an actor's start and end, and the actors that it watches."""


cdef class TimersOfActor:
    """The timers that an actor has begun."""


cdef class Concurrency:
    """The unfinished messages of an actor that may have several at a time."""

    def __cinit__(self):
        self.messages = {}


cdef class Extra:
    """State that only some actors need; most refs have none."""

    cdef Watches watches_now(self):
        """Return its watches, which are made when first needed."""
        if self.watches is None:
            self.watches = Watches.__new__(Watches)
        return self.watches

    cdef Concurrency concurrency_now(self):
        """Return what it has of concurrent messages, which is made when first needed."""
        if self.concurrency is None:
            self.concurrency = Concurrency.__new__(Concurrency)
        return self.concurrency

    cdef int replay_first(self, list envelopes) except -1:
        """Have envelopes handled next, in their order, before all others."""
        if self.replay is None:
            self.replay = deque()
        self.replay.extendleft(reversed(envelopes))
        return 0

    cdef int replay_last(self, object stored) except -1:
        """Have an envelope handled before the mailbox, behind those that are to be."""
        if self.replay is None:
            self.replay = deque()
        self.replay.append(stored)
        return 0


cdef class Intake:
    """Takes messages out of one actor's queue, keeps them, and hands them out in its own order.

    The readiness owner calls it, with the interpreter. A message counts in the cell's `limits` until it is
    handed out.
    """

    cdef TakeResult take(self, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
        """Hand out the message that comes first, if there is one."""
        return NOTHING

    cdef bint is_empty(self) noexcept:
        """Tell whether nothing is kept here."""
        return True

    cdef list take_all(self, ActorCell* cell):
        """Return all envelopes that are kept, in the order of their arrival, at the actor's end."""
        return []


cdef str name_of(ActorHandle ref):
    if ref.own_name is not None:
        return ref.own_name
    return f"{ref.recipe.cls.__name__}-{ref.cell.number}"


cdef str path_of(ActorHandle ref, int most):
    """Return the names down to an actor; of more than `most`, if that is not 0, the last ones."""
    cdef list names = []
    while ref is not None and (most == 0 or len(names) < most):
        names.append(name_of(ref))
        ref = ref.parent
    names.append("" if ref is None else "...")
    names.reverse()
    return "/".join(names)


cdef class ActorHandle(Waiter):
    """An actor as others see it: its name and place, and what it waits for."""

    # --- identity ------------------------------------------------------------------------------------

    @property
    def is_alive(self):
        """False from the moment when the actor begins to stop."""
        return self.phase < STOPPING

    @property
    def _ending(self):
        """How it ended, or would now, if no failure is the reason."""
        return self.ending if self.ending is not None else self.runtime.ending()

    @property
    def name(self):
        """The name given at spawn, or the class's name and the actor's number."""
        return name_of(self)

    @property
    def path(self):
        """The names from the top-level actor down to this one: `/shop/cart-7`."""
        return path_of(self, 0)

    @property
    def _short_path(self):
        """The path as errors and logs have it: only the last names for an actor in a deep tree."""
        return path_of(self, MOST_NAMES)

    @property
    def actor_class(self):
        """The class that the actor was spawned from."""
        return self.recipe.cls

    @property
    def system(self):
        """The actor's system; None if it was dropped."""
        return self.runtime.system

    @property
    def children(self):
        """The actor's children, in the order of their spawning."""
        return list(self.children_of) if self.children_of is not None else []

    @property
    def _is_abandoned(self):
        """True if the actor will never run: its manual system was dropped."""
        return self.runtime.manual and self.runtime.system is None

    @property
    def _wait_cause(self):
        """The WaitCause of the actor; None if it has something to do, or has ended."""
        return self.wait_cause()

    @property
    def _owes(self):
        """How many asks wait for futures that the actor returned as their answers."""
        cdef Extra extra = self.extra_now()
        return len(extra.deferred) if extra is not None and extra.deferred is not None else 0

    @property
    def _is_waiting(self):
        """True while the actor is in the middle of an `async def receive`, or backs off."""
        cdef Extra extra = self.extra_now()
        if extra is not None:
            if extra.leaving is not None or extra.concurrency is not None and extra.concurrency.messages:
                return True
        return self.phase == SUSPENDED or self.phase == RESTARTING

    @property
    def _is_at_rest(self):
        """True while the actor waits for input in the middle of its work: that keeps no system from idleness."""
        awaited = self.awaited()
        return awaited is not None and (<Future>awaited).is_rest

    @property
    def _step_since(self):
        """When the step of its code began that the event loop runs just now, in monotonic ns; 0 if it runs none."""
        cdef Extra extra = self.extra_now()
        return 0 if extra is None else extra.step_since

    @property
    def _ends(self):
        """The figures of the ends of channels that the actor has, for statistics."""
        cdef Extra extra = self.extra_now()
        if extra is None:
            return []
        with cython.critical_section(extra):
            resources = extra.resources
        return [figures for one in list(resources or ()) if (figures := one._figures()) is not None]

    def statistics(self):
        """Return the actor's figures so far: an ActorStatistics of `system.statistics()`, with `in_message` None.

        They may be a little old, because the actor goes on.
        """
        return self._statistics(self.path, None)

    def info(self):
        """Return what the actor waits for, an ActorInfo. In any thread.

        It may be a little old, because the actor goes on.
        """
        cause = self.wait_cause()
        awaited = self.awaited()
        return ActorInfo(
            waits_for=None if cause is None else str(cause),
            wait_reason=None if cause is None else cause.reason,
            awaits=None if awaited is None else (<Future>awaited).target,
            pending_answers=self._owes,
            is_suspended=self._is_waiting,
        )

    def _statistics(self, str path, in_message):
        """Return the actor's figures. `in_message`: for how many seconds it has been in its message, or None."""
        worker = self.worker
        is_timed = worker is not None and worker.is_timed
        messages = self._messages
        busy = self._busy_ns / 1e9
        cause = self.wait_cause()
        created = self._created_ns / 1e9 if self._created_ns else None
        alive = time.monotonic() - created if created is not None else None
        return ActorStatistics(
            path=path,
            worker="" if worker is None else worker.name,
            messages=messages,
            dispatches=self._dispatches,
            total=busy if is_timed else None,
            mean=busy / messages if is_timed and messages else None,
            queue=self._queue_length,
            peak=self._queue_peak,
            dropped=self._dropped,
            waits_for=None if cause is None else str(cause),
            in_message=in_message,
            created=created,
            alive=alive,
            idle=max(alive - busy, 0.0) if alive is not None else None,
        )

    # --- what it waits for ---------------------------------------------------------------------------

    cdef object wait_cause(self):
        """Return why the actor waits, a WaitCause, or None. In any thread."""
        cdef object awaited = None
        cdef object there = None
        cdef object outgoing = None
        cdef object full = None
        cdef Concurrency concurrency = None
        cdef Phase phase = self.phase
        cdef Extra extra = self.extra_now()
        if phase == CLOSED:
            return None
        if extra is not None and extra.step_since != 0:
            return None
        if phase >= RESTARTING and (extra is None or extra.leaving is None):  # else it is in its on_stop()
            backs_off = extra is not None and extra.backing_off
            return WaitCause(WaitTarget.RESTART if backs_off else WaitTarget.CHILDREN)
        if extra is not None:
            with cython.critical_section(extra):
                awaited, there, outgoing, full = extra.awaited, extra.awaited_there, extra.outgoing, extra.full
                concurrency = extra.concurrency
            if awaited is None and concurrency is not None:
                for message in list(concurrency.messages)[:1]:
                    awaited = message._awaited()
        if full is None and outgoing is not None:
            full = outgoing._full
        if full is not None:
            return WaitCause(WaitTarget.ROOM, full)
        if there is None and awaited is not None and self.recipe.event_loop:
            return WaitCause(WaitTarget.EVENT_LOOP)
        awaited = awaited if there is None else there
        if awaited is not None:
            cause = None if (<Future>awaited).flag.is_set() else awaited._wait_cause
            return cause
        if phase == LIVE and self.cell.tail.is_idle():
            return WaitCause(WaitTarget.MESSAGE)
        return None

    cdef object awaited(self):
        cdef Extra extra = self.extra_now()
        if extra is None:
            return None
        with cython.critical_section(extra):
            awaited = extra.awaited if extra.awaited_there is None else extra.awaited_there
        return awaited

    cdef object note_wait(self, Future awaited):
        """Note what the actor waits for elsewhere than in its dispatch. Return None, or the AskDeadlock that
        this closes, with nothing noted."""
        cdef Extra extra = self.extras()
        with cython.critical_section(extra):  # others look for cycles; see awaited()
            extra.awaited_there = awaited
        if awaited is None:
            return None
        error = circle(self, None, awaited)
        if error is not None:
            self.note_wait(None)
        return error

    cdef void note_full(self, object to) noexcept:
        cdef Extra extra = self.extras()
        with cython.critical_section(extra):
            extra.full = to

    cdef int wait_for(self, object future, object timeout) except -1:
        error = self.note_wait(<Future?>future)
        if error is not None:
            raise error
        try:
            future._wait(timeout)
        finally:
            self.note_wait(None)
        return 0

    # --- its mailbox and its cell -----------------------------------------------------------------------

    cdef bint is_waited_for(self, Context* context) noexcept:
        """Tell whether an actor on the event loop waits for room here, if there is none."""
        cdef void* overflow = (<ActorCell*>self.cell).overflow
        if self.cell.has(closed_cell | forked_cell) or overflow == NULL or context.current == self.cell:
            return False
        return (<Overflow>overflow).waits

    cdef bint is_run_here(self) except -1:
        """Tell whether a wait in this thread would run the actor: its system is manual."""
        system = self.runtime.system if self.runtime.manual else None
        return system is not None and system._is_run_here

    @property
    def _keeps_messages(self):
        """Tell whether a full mailbox, if it can be full, has senders wait, and drops nothing."""
        cdef void* overflow = (<ActorCell*>self.cell).overflow
        return overflow == NULL or (<Overflow>overflow).waits

    @property
    def _room(self):
        """How many messages find room in the mailbox just now; None where nobody waits for room."""
        cdef void* overflow = (<ActorCell*>self.cell).overflow
        if overflow == NULL or not (<Overflow>overflow).waits:
            return None
        return max(0, self.cell.limits.capacity - self.cell.limits.count())

    def _be_sampled(self, is_sampled):
        """Have traces show some of the messages from now on, or stop that. Those of native actors cannot be shown."""
        if not is_sampled:
            self.cell.clear(sampled_cell)
        elif self.cell.has(recorded_cell) and not self.cell.has(native_cell | task_cell):
            self.cell.set(sampled_cell)

    def _forbid(self):
        """Make every further use an error: this is a copy in a forked process."""
        self.cell.set(forked_cell)
        if self.extra is not None and self.extra.resources is not None:
            for resource in self.extra.resources:
                resource._forbid()

    cdef void mark_closed(self) noexcept:
        """Let senders know from now on that the actor handles no more messages."""
        assert holds(not self.cell.has(closed_cell))  # an actor ends once
        self.cell.set(closed_cell)
        self.cell.clear(recorded_cell)
        self.phase = CLOSED

    cdef Extra extras(self):
        if self.extra is None:
            with cython.critical_section(self):
                self.extra = Extra.__new__(Extra)
        return self.extra

    cdef Extra extra_now(self):
        # In any thread, while the actor goes on: a reader of a field must own it until it has its own reference.
        with cython.critical_section(self):
            extra = self.extra
        return extra

    # --- as an object --------------------------------------------------------------------------------

    __class_getitem__ = classmethod(types.GenericAlias)

    def _repr_html_(self):
        """Show the actor's figures, for notebooks."""
        queue = self._queue_length
        return table(
            ("actor", "class", "messages", "queue", "waits for"),
            [(self._short_path, self.actor_class.__qualname__, self._messages, "-" if queue is None else queue,
              self.wait_cause() or ("-" if self.is_alive else "nothing: it has ended"))],
            (0, 1, 4),
        )

    def __repr__(self):
        return f"<{type(self).__name__} {self._short_path}{'' if self.is_alive else ', stopped'}>"

    def __copy__(self):
        return self  # there is one actor, whatever holds its ref

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            f"{self!r} cannot be pickled: it is valid only in its own process. "
            "In Spark, spawn the actor in build() instead of capturing its ref"
        )
