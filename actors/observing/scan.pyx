"""Walks over all actors of a system, and returns the busiest since the last walk, or sums by class."""

import threading
import weakref
from heapq import heappush, heapreplace
from itertools import islice

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.sending.state cimport CLOSED, LIVE
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport relaxed
from callboard.scheduling.cell cimport Cell

from callboard.core.errors import CallboardError

# The number of actors after which other threads may have the interpreter.
cdef int STEP = 2048
# The number of actors that are not idle which are returned, for their reasons.
cdef int MOST_OTHERS = 500
# The number of siblings whose memory is prefetched: that saves a sixth of the walk.
cdef int AHEAD = 8

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil


cdef struct ActorCounters:
    uint64_t number
    uint64_t messages
    uint64_t busy_ns
    uint64_t dropped


cdef class ClassTotals:
    """The actors of one class: how many live and how many messages wait now, and what they did so far."""

    cdef readonly uint64_t live, queued, longest, messages, busy_ns, dropped


@cython.final
cdef class _ActorWalk:
    # A walk of all live actors, parents before their children. The siblings in work, and the next one's place.
    cdef list brothers
    cdef Py_ssize_t place, size
    # Siblings of those above, and the places there.
    cdef list above
    cdef vector[Py_ssize_t] places
    cdef int steps

    cdef int begin(self, Runtime runtime) except -1:
        if runtime is None:
            raise CallboardError("this ActorScan has no system: make it by calling its class")
        self.above = []
        self.brothers = list(runtime.children)
        self.size = len(self.brothers)
        return 0

    cdef ActorRef next(self):
        """Return the next actor that lives on a worker; None at the end."""
        cdef ActorRef ref
        cdef Cell* cell
        while True:
            if self.place == self.size:
                if not self.above:
                    return None
                self.brothers = self.above.pop()
                self.size = len(self.brothers)
                self.place = self.places.back()
                self.places.pop_back()
                continue
            ref = <ActorRef>self.brothers[self.place]
            self.place += 1
            if self.place + AHEAD < self.size:
                cell = (<ActorRef>self.brothers[self.place + AHEAD]).cell
                prefetch(&cell.tail)
                prefetch(&cell.number)
            if ref.children_of is not None:
                self.go_down(ref)
            self.steps += 1
            if self.steps % STEP == 0:
                with nogil:
                    pass
            if ref.cell.get_affinity(relaxed) != NULL:  # otherwise it is being spawned
                return ref

    cdef int go_down(self, ActorRef ref) except -1:
        """Continue with an actor's children."""
        cdef list children = ref.children
        if children:
            self.above.append(self.brothers)
            self.places.push_back(self.place)
            self.brothers, self.place, self.size = children, 0, len(children)
        return 0


cdef class ActorScan:
    """The counters of each live actor as of the last walk. One thread at a time.

    It costs nothing between two walks, and 32 bytes for an actor. It reads what is there, and disturbs no actor.
    """

    cdef Runtime runtime
    cdef vector[ActorCounters] before  # in the order of the walk
    cdef uint64_t last_number          # the largest number that the last walk met
    cdef int64_t looked_at
    cdef object lock                   # of what follows
    cdef dict ended                    # class -> ClassTotals of those that no walk has met
    cdef list met                      # tuples of those that one may have met: number, class, counters
    cdef bint walks
    cdef object __weakref__

    def __init__(self, Runtime runtime not None):
        self.runtime = runtime
        self.lock = threading.Lock()
        self.ended = {}
        self.met = []

    def count_ended(self):
        """Have `add_to()` count what actors do that end between two walks, too, from now on."""
        self.runtime.scans = (*[scan for scan in self.runtime.scans if scan() is not None], weakref.ref(self))

    def note_end(self, ActorRef ref not None):
        """Count an actor that has ended, and left its parent. In any thread."""
        cdef ActorCounters one = counters_of(ref, True)
        with self.lock:
            if self.walks or one.number <= self.last_number:
                self.met.append((one.number, ref.recipe.cls, one.messages, one.busy_ns, one.dropped))
            else:
                add_counters(self.ended, ref.recipe.cls, one.messages, one.busy_ns, one.dropped)

    def look(self, str by not None, Py_ssize_t most, dict working not None, str part not None=""):
        """Walk all actors: return the seconds since the last walk, counts, the first actors, and those not idle.

        Counts are of live actors, of idle ones, and of messages that wait, as far as these are counted. The first are
        up to `most` with the largest `by`: "load", the time in dispatches since the last walk; "rate", the messages;
        "queue", the messages that wait; "total", the messages so far. Each is a tuple of its key, a number that makes
        it unique, the ref, and the messages and nanoseconds since the last walk. `working` has the seconds of the
        current messages of actors in work, by number. Actors whose path and class lack `part` are left out of the
        first. The others are refs, 500 at most, and all in work.
        """
        cdef vector[ActorCounters] now
        cdef list first = []
        cdef list others = []
        cdef ActorRef ref
        cdef ActorCounters one, new
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t position = 0
        cdef Py_ssize_t idle = 0
        cdef int64_t queued = 0
        cdef object cls = None
        cdef bint is_of_class = False
        cdef int64_t key, least = -1
        cdef int64_t since = self.looked_at
        cdef uint64_t last_number = self.last_number
        cdef char kind = {"load": b"l", "rate": b"r", "queue": b"q", "total": b"t"}.get(by, b"?")[0]
        cdef _ActorWalk walk = _ActorWalk.__new__(_ActorWalk)
        walk.begin(self.runtime)
        if kind == b"?":
            raise CallboardError(f"expected load, rate, queue or total as the order of actors, got {by!r}")
        self.looked_at = monotonic_ns()
        cdef uint64_t window = <uint64_t>(self.looked_at - since) if since else 0
        now.reserve(self.before.size())
        while (ref := walk.next()) is not None:
            position += 1
            one = counters_of(ref, False)
            now.push_back(one)
            last_number = max(last_number, one.number)
            new = self.since_before(one, at)
            if ref.phase == LIVE and ref.cell.tail.is_idle():
                idle += 1
            else:
                if ref.cell.limits != NULL:
                    queued += ref.cell.limits.count()
                is_working = one.number in working
                if is_working:  # in a message whose time is not counted before its end
                    new.busy_ns = max(new.busy_ns, <uint64_t>(1e9 * working[one.number]))
                if is_working or ref.phase != CLOSED and len(others) < MOST_OTHERS:
                    others.append(ref)
            if window:
                new.busy_ns = min(new.busy_ns, window)
            if kind == b"l":
                key = new.busy_ns
            elif kind == b"r":
                key = new.messages
            elif kind == b"t":
                key = one.messages
            else:
                key = ref.cell.limits.count() if ref.cell.limits != NULL else 0
            if part and ref.recipe.cls is not cls:
                cls = ref.recipe.cls
                is_of_class = part in cls.__name__
            if key > least and (not part or is_of_class or part in ref._short_path):
                entry = key, -position, ref, new.messages, new.busy_ns
                if len(first) < most:
                    heappush(first, entry)
                elif most > 0:
                    heapreplace(first, entry)
                if len(first) >= most > 0:
                    least = first[0][0]
        self.before.swap(now)
        self.last_number = last_number
        first.sort(reverse=True)
        return window / 1e9, (position, idle, queued), first, others

    def add_to(self, dict totals not None):
        """Walk all actors, and bring the ClassTotals of each class up to date: `totals` has them by class.

        Counters never fall. Actors that end between two walks are counted up to their end after `count_ended()`, else
        up to the first of the walks.
        """
        cdef vector[ActorCounters] now
        cdef ActorRef ref
        cdef ActorCounters one, new
        cdef Py_ssize_t at = 0
        cdef uint64_t last_number = self.last_number
        cdef uint64_t queued
        cdef ClassTotals total = None
        cdef object cls = None
        cdef _ActorWalk walk = _ActorWalk.__new__(_ActorWalk)
        with self.lock:
            self.walks = True
        walk.begin(self.runtime)
        for total in totals.values():
            total.live = total.queued = total.longest = 0
        now.reserve(self.before.size())
        while (ref := walk.next()) is not None:
            one = counters_of(ref, True)
            now.push_back(one)
            last_number = max(last_number, one.number)
            new = self.since_before(one, at)
            if ref.recipe.cls is not cls:
                cls = ref.recipe.cls
                total = totals.get(cls)
                if total is None:
                    total = totals[cls] = ClassTotals.__new__(ClassTotals)
            queued = <uint64_t>ref.cell.limits.count() if ref.cell.limits != NULL else 0
            total.live += 1
            total.queued += queued
            total.longest = max(total.longest, queued)
            total.messages += new.messages
            total.busy_ns += new.busy_ns
            total.dropped += new.dropped
        with self.lock:
            ended, self.ended = self.ended, {}
            met, self.met = self.met, []
            self.walks = False
            self.last_number = last_number
        for cls, total in ended.items():
            add_counters(totals, cls, total.messages, total.busy_ns, total.dropped)
        if met:
            self.add_met(totals, met, now)
        self.before.swap(now)

    cdef int add_met(self, dict totals, list met, vector[ActorCounters]& now) except -1:
        """Add the work of ended actors since this walk, or the last one, met them."""
        cdef set numbers = {entry[0] for entry in met}
        cdef dict known = {}
        cdef ActorCounters one
        for one in self.before:
            if one.number in numbers:
                known[one.number] = one.messages, one.busy_ns, one.dropped
        for one in now:
            if one.number in numbers:
                known[one.number] = one.messages, one.busy_ns, one.dropped
        for number, cls, messages, busy_ns, dropped in met:
            before = known.get(number, (0, 0, 0))
            add_counters(totals, cls, messages - before[0], busy_ns - before[1], dropped - before[2])
        return 0

    def with_queue(self, int64_t least):
        """Walk all actors, and return those with at least this number of waiting messages, as far as counted."""
        cdef ActorRef ref
        cdef list found = []
        cdef _ActorWalk walk = _ActorWalk.__new__(_ActorWalk)
        walk.begin(self.runtime)
        while (ref := walk.next()) is not None:
            if ref.cell.limits != NULL and ref.cell.limits.count() >= least:
                found.append(ref)
        return found

    cdef ActorCounters since_before(self, ActorCounters one, Py_ssize_t& at) noexcept:
        """Return an actor's counters without those of the last walk, where it stood at `at` or behind.

        Those that stood between have ended since, as the others stay in their order. So all calls of a walk together
        look at each one once.
        """
        cdef Py_ssize_t found = at
        if one.number > self.last_number:
            return one
        while found < <Py_ssize_t>self.before.size():
            if self.before[found].number == one.number:
                one.messages -= self.before[found].messages
                one.busy_ns -= self.before[found].busy_ns
                one.dropped -= self.before[found].dropped
                (&at)[0] = found + 1
                return one
            found += 1
        return one  # it was being spawned during the last walk


def first_children(Runtime runtime not None, ActorRef ref or None, Py_ssize_t most):
    """Return the first children of an actor, or of the system, up to `most`, and their number."""
    cdef dict children = runtime.children if ref is None else ref.children_of
    if children is None:
        return [], 0
    try:
        return list(islice(children, most)), len(children)
    except RuntimeError:  # one came, or went, during this
        return list(children)[:most], len(children)


cdef int add_counters(dict totals, cls, uint64_t messages, uint64_t busy_ns, uint64_t dropped) except -1:
    cdef ClassTotals total = totals.get(cls)
    if total is None:
        total = totals[cls] = ClassTotals.__new__(ClassTotals)
    total.messages += messages
    total.busy_ns += busy_ns
    total.dropped += dropped
    return 0


cdef inline ActorCounters counters_of(ActorRef ref, bint limits) noexcept:
    cdef ActorCounters one
    one.number = ref.cell.number
    one.messages = ref.cell.get_messages()
    one.busy_ns = ref.cell.get_busy_ns()
    one.dropped = ref.cell.limits.get_dropped(relaxed) if limits and ref.cell.limits != NULL else 0
    return one
