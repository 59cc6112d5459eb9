"""Who finds the partners of a row by a C function of two native values, without the interpreter."""

import cython

from cython.operator cimport dereference, preincrement
from libcpp.deque cimport deque

from callboard.core.node cimport Kind
from callboard.scheduling.flow.values cimport Value, Values
from callboard.streams.programs.finder cimport Finder
from callboard.streams.programs.kept cimport Kept, WindowRule
from callboard.streams.programs.values cimport lot_of

# From so many rows on, others may have the interpreter while they are compared with one.
cdef size_t MANY = 256


cdef class NativePredicate:
    """Says which rows of a join are partners, by a C function: see `docs/streams-native.md`.

    `__init__` is an ordinary method. An object may serve several lanes at once, so `matches` must not
    change it.
    """

    cdef bint matches(self, const Value* left, const Value* right) noexcept nogil:
        return False


@cython.final
cdef class NativeFinder(Finder):
    """Compares each pair."""

    def __init__(self, WindowRule rule, size_t lane, size_t lanes, *, NativePredicate predicate, bint once):
        super().__init__(rule, lane, lanes)
        self.predicate, self.once = predicate, once

    def __dealloc__(self):
        cdef Py_ssize_t side
        drop(self.latest)
        for side in range(2):
            while not self.values(side).empty():
                drop(self.values(side).front())
                self.values(side).pop_front()

    cdef list partners(self, Kept kept):
        cdef list found = []
        cdef size_t place
        cdef Kept other
        others = self.windows[1 - kept.side]
        self.read(kept.row)
        if self.values(1 - kept.side).size() < MANY:
            self.compare(kept.side)
        else:
            with nogil:
                self.compare(kept.side)
        self.compared += self.values(1 - kept.side).size()
        for place in self.hits:
            other = others[place]
            if not (other.failed or (self.once and kept.side == 1 and other.matched)):
                found.append(other)
        return found

    cdef int compare(self, Py_ssize_t side) except -1 nogil:
        """Find the places of the latest row's partners."""
        cdef deque[Value]* others = self.values(1 - side)
        cdef size_t place = 0
        cdef bint is_partner
        cdef deque[Value].iterator other = others.begin()
        self.hits.clear()
        while other != others.end():
            if side == 0:
                is_partner = self.predicate.matches(&self.latest, &dereference(other))
            else:
                is_partner = self.predicate.matches(&dereference(other), &self.latest)
            if is_partner:
                self.hits.push_back(place)
            place += 1
            preincrement(other)
        return 0

    cdef int read(self, object row) except -1:
        """Make a row the latest. Raises TypeError and ValueError."""
        cdef Values* lot = lot_of([row])
        drop(self.latest)
        self.latest = lot.begin()[0]
        retain(self.latest)
        lot.free()
        return 0

    cdef deque[Value]* values(self, Py_ssize_t side) noexcept nogil:
        return &self.rights if side else &self.lefts

    cdef int stored(self, Kept kept) except -1:
        self.values(kept.side).push_back(self.latest)
        retain(self.latest)
        return 0

    cdef int left(self, Kept kept) except -1:
        drop(self.values(kept.side).front())
        self.values(kept.side).pop_front()
        return 0


cdef void retain(const Value& value) noexcept:
    if value.kind == Kind.buffer:
        value.buffer.retain()


cdef void drop(const Value& value) noexcept:
    if value.kind == Kind.buffer:
        value.buffer.drop()
