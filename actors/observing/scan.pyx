"""Walks all actors of a system in one go, and finds those with the most to do since the last walk."""

from heapq import heappush, heapreplace

from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.sending.state cimport CLOSED, LIVE
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport relaxed
from callboard.scheduling.cell cimport Cell

from callboard.core.errors import CallboardError

# After so many actors other threads may have the interpreter.
cdef int STEP = 2048
# How many actors that are not idle are handed out, to be asked why.
cdef int MOST_OTHERS = 500


# How many brothers ahead memory is fetched: that saves a third of the walk.
cdef int AHEAD = 8

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil


cdef struct ActorCounters:
    uint64_t number
    uint64_t messages
    uint64_t busy_ns


cdef class ActorScan:
    """The counters of each live actor as of the last walk. One thread at a time.

    It costs nothing between two walks, and 24 bytes for an actor. It reads what is there, and disturbs no actor.
    """

    cdef Runtime runtime
    cdef vector[ActorCounters] before     # in the order of the walk
    cdef uint64_t last_number    # the largest number that the last walk met
    cdef int64_t looked_at

    def __init__(self, Runtime runtime not None):
        self.runtime = runtime

    def look(self, str by not None, Py_ssize_t most, dict working not None, str part not None=""):
        """Walk all actors: return the seconds since the last walk, counts, the first actors, and those not idle.

        Counts are of live and of idle actors. The first are up to `most` with the largest `by`: "load", the time in
        dispatches since the last walk; "rate", the messages; "queue", the messages that wait; "total", the messages so
        far. Each is a tuple of its key, a number that makes it unique, the ref, and the messages and nanoseconds since
        the last walk. `working` has the seconds of the current messages of actors in work, by number. Actors whose path
        lacks `part` are left out of the first. The others are refs, 500 at most, and all in work.
        """
        cdef vector[ActorCounters] now
        cdef vector[Py_ssize_t] positions
        cdef list levels, siblings
        cdef list first = []
        cdef list others = []
        cdef ActorRef ref
        cdef Cell* cell
        cdef ActorCounters seen
        cdef Py_ssize_t found, at = 0
        cdef Py_ssize_t position = 0
        cdef Py_ssize_t idle = 0
        cdef int64_t key, least = -1
        cdef int64_t since = self.looked_at
        cdef uint64_t messages, busy_ns, last_number = self.last_number
        cdef char kind = {"load": b"l", "rate": b"r", "queue": b"q", "total": b"t"}.get(by, b"?")[0]
        if self.runtime is None:
            raise CallboardError("this ActorScan has no system: make it by calling its class")
        if kind == b"?":
            raise CallboardError(f"actors are sorted by load, rate, queue or total, not by {by!r}")
        self.looked_at = monotonic_ns()
        cdef int64_t window = self.looked_at - since if since else 0
        now.reserve(self.before.size())
        levels = [list(self.runtime.children)]
        positions.push_back(0)
        while levels:
            siblings = <list>levels[len(levels) - 1]
            if positions.back() == len(siblings):
                levels.pop()
                positions.pop_back()
                continue
            ref = <ActorRef>siblings[positions.back()]
            positions[positions.size() - 1] += 1
            if positions.back() + AHEAD < len(siblings):
                cell = (<ActorRef>siblings[positions.back() + AHEAD]).cell
                prefetch(&cell.tail)
                prefetch(&cell.number)
            children = ref.children_of
            if children:
                levels.append(list(children))
                positions.push_back(0)
            cell = ref.cell
            if cell.get_affinity(relaxed) == NULL:
                continue  # it is being spawned
            position += 1
            if position % STEP == 0:
                with nogil:
                    pass
            seen.number, seen.messages, seen.busy_ns = cell.number, cell.get_messages(), cell.get_busy_ns()
            now.push_back(seen)
            last_number = max(last_number, seen.number)
            messages, busy_ns = seen.messages, seen.busy_ns
            found = self.find(seen.number, at) if seen.number <= self.last_number else -1
            if found >= 0:
                messages -= self.before[found].messages
                busy_ns -= self.before[found].busy_ns
                at = found + 1
            if ref.phase == LIVE and cell.tail.is_idle():
                idle += 1
            else:
                is_working = seen.number in working
                if is_working:  # in a message whose time is not counted before its end
                    busy_ns = max(busy_ns, <uint64_t>(1e9 * working[seen.number]))
                if is_working or ref.phase != CLOSED and len(others) < MOST_OTHERS:
                    others.append(ref)
            if window:
                busy_ns = min(busy_ns, <uint64_t>window)
            if kind == b"l":
                key = busy_ns
            elif kind == b"r":
                key = messages
            elif kind == b"t":
                key = seen.messages
            else:
                key = cell.limits.count() if cell.limits != NULL else 0
            if key > least and (not part or part in ref._short_path):
                entry = key, -position, ref, messages, busy_ns
                if len(first) < most:
                    heappush(first, entry)
                elif most > 0:
                    heapreplace(first, entry)
                if len(first) >= most > 0:
                    least = first[0][0]
        self.before.swap(now)
        self.last_number = last_number
        first.sort(reverse=True)
        return window / 1e9, (position, idle), first, others

    cdef Py_ssize_t find(self, uint64_t number, size_t at) noexcept:
        """Return where an actor was in the last walk, from `at` on; -1 if it was being spawned then.

        Those that stood between have ended since, as the others stay in their order: all calls of a walk together
        look at each one once.
        """
        while at < self.before.size():
            if self.before[at].number == number:
                return at
            at += 1
        return -1
