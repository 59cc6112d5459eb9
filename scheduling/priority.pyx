"""Priority policies choose the ready actor that a worker dispatches next.

The shipped policies run without the interpreter, in a few nanoseconds; `priority.hpp` has their structures.
"""

cimport cython
from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport relaxed
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.handle cimport Handle

from callboard.core.handles import public_names
from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.log import log
from callboard.core.text import safe_repr


# The shipped policies' structures.
cdef extern from "callboard/scheduling/priority.hpp" namespace "callboard" nogil:
    cdef cppclass TwoLevelReady:
        TwoLevelReady(uint64_t patience)

    cdef cppclass WeightedReady:
        WeightedReady(int64_t ageing)

    cdef cppclass ShortestReady:
        ShortestReady(int64_t patience)

    cdef cppclass LongestReady:
        LongestReady(uint64_t window)


cdef class ReadyOrder:
    """The order in which a worker dispatches its ready actors. The base of all priority policies."""

    def __dir__(self):
        return public_names(self)

    def __dealloc__(self):
        if self.ready.destroy != NULL:
            self.ready.destroy(self.ready.state)

    def _counts_messages(self):
        return self.counted


cdef class PriorityPolicy(ReadyOrder):
    """Orders the ready actors of one worker. The base of your own priority policies.

    Each worker has its own instance, and calls it only on its own thread, so a policy needs no
    locks (Prokesch 2011, section 4.2.3). Subclass it and define both methods, or, in Cython, set
    the C functions in `ready`, which run without the interpreter.

    With `timed = True` or `counted = True` in the class, each dispatch is measured
    (`actor.statistics().mean`), or each mailbox counts (`actor.statistics().queue`).

    No policy may starve a ready actor. The worker keeps its own list of ready actors. It abandons a Python policy that
    raises, returns an actor that is not ready, returns None although actors are ready, or skips one `patience` times.
    It then logs one event, and continues in the order in which actors became ready.
    """

    def __cinit__(self, *args, **kwargs):
        self.ready.state = &self.tracked
        self.ready.put = put_in_python
        self.ready.fetch = fetch_in_python
        self.tracked.policy = <void*>self
        self.patience = 100_000
        self.timed = getattr(type(self), "timed", False) is True
        self.counted = getattr(type(self), "counted", False) is True

    def put_ready(self, actor):
        """Record that the actor with the ref `actor` became ready. On the worker's thread."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method `put_ready`")

    def fetch_ready(self):
        """Return the ready actor to dispatch next, and remove it. On the worker's thread.

        Called only if an actor is ready.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has no method `fetch_ready`")

    def _check(self):
        if self.ready.put != put_in_python:
            return
        for method in ("put_ready", "fetch_ready"):
            own = method in getattr(self, "__dict__", ())
            if not own and getattr(type(self), method) is getattr(PriorityPolicy, method):
                raise ConfigError(f"{type(self).__qualname__} has no method `{method}`")


cdef void put_in_python(void* state, Cell* cell) noexcept nogil:
    tracked = <TrackedReady*>state
    tracked.put(cell)
    if not tracked.given_up:
        tell_policy(tracked, cell)


cdef Cell* fetch_in_python(void* state) noexcept nogil:
    tracked = <TrackedReady*>state
    cdef Cell* cell = NULL
    if tracked.first() == NULL:
        return NULL
    if not tracked.given_up:
        cell = ask_policy(tracked)
    if cell == NULL:
        cell = tracked.first()
    tracked.take(cell)
    return cell


cdef void tell_policy(TrackedReady* tracked, Cell* cell) noexcept with gil:
    try:
        (<PriorityPolicy>tracked.policy).put_ready(<object>cell.owner)
    except BaseException as error:
        give_up(tracked, "put_ready() raised", error)


cdef Cell* ask_policy(TrackedReady* tracked) noexcept with gil:
    """Return the cell of the actor that the policy returns; null if that is invalid."""
    cdef PriorityPolicy policy = <PriorityPolicy>tracked.policy
    cdef Cell* oldest = tracked.first()
    cdef Cell* cell
    try:
        answer = policy.fetch_ready()
        if not isinstance(answer, Handle):
            give_up(tracked, f"{tracked.count()} actors are ready, and fetch_ready() returned {safe_repr(answer)}")
            return NULL
        cell = (<Handle>answer).cell
        if cell.get_ready_on(relaxed) != oldest.get_ready_on(relaxed):
            give_up(tracked, f"fetch_ready() returned {safe_repr(answer)}, which is not ready on this worker")
            return NULL
        if cell != oldest and tracked.passes() >= policy.patience:
            give_up(tracked, f"{<object>oldest.owner!r} was passed by {tracked.passes()} times")
            return NULL
    except BaseException as error:
        give_up(tracked, "fetch_ready() raised", error)
        return NULL
    return cell


cdef int give_up(TrackedReady* tracked, str problem, error=None) except -1:
    tracked.given_up = True
    assert holds(tracked.first() != NULL)
    worker = <object>tracked.first().get_ready_on(relaxed).owner
    log.error(
        "a priority policy failed; its worker continues with Fifo",
        policy=safe_repr(<object>tracked.policy), worker=worker.name, problem=problem, exc_info=error,
    )
    return 0


@cython.final
cdef class Fifo(ReadyOrder):
    """Dispatch actors in the order in which they became ready (section 5.4.2)."""

    __signature__ = checks.takes()

    def __cinit__(self):
        self.ready = owned_ready_set(new ReadyQueue())


@cython.final
cdef class TwoLevel(ReadyOrder):
    """Dispatch first the actors that were spawned with a `priority` (section 6.2.2).

    After `patience` dispatches of such actors while another was ready, that one comes next.
    """

    __signature__ = checks.takes(patience=16)

    def __cinit__(self, patience=16):
        self.ready = owned_ready_set(new TwoLevelReady(at_least_one("TwoLevel", "patience", patience)))


@cython.final
cdef class Weighted(ReadyOrder):
    """Dispatch first the actors with a higher `priority` at spawn, aged.

    While an actor waits, its priority rises by one each time `ageing` others become ready, so that no actor starves.
    """

    __signature__ = checks.takes(ageing=16)

    def __cinit__(self, ageing=16):
        self.ready = owned_ready_set(new WeightedReady(at_least_one("Weighted", "ageing", ageing)))


@cython.final
cdef class ShortestFirst(ReadyOrder):
    """Dispatch first the actors with the shortest mean time for a message.

    After waiting `patience` times its mean cost, an actor comes before all that become ready later. Each dispatch is
    measured.
    """

    __signature__ = checks.takes(patience=100)

    def __cinit__(self, patience=100):
        self.ready = owned_ready_set(new ShortestReady(at_least_one("ShortestFirst", "patience", patience)))
        self.timed = True


@cython.final
cdef class LongestQueue(ReadyOrder):
    """Dispatch first the actor with the most waiting messages.

    It chooses among the `window` actors that became ready first, and skips each at most `window` times. Every mailbox
    counts its messages.
    """

    __signature__ = checks.takes(window=16)

    def __cinit__(self, window=16):
        self.ready = owned_ready_set(new LongestReady(at_least_one("LongestQueue", "window", window)))
        self.counted = True


cdef int64_t at_least_one(str policy, str option, value) except -1:
    return checks.whole(f"the {option} of {policy}", value, 1, 2**31 - 1, error=ConfigError)
