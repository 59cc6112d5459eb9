"""A finder of rows' partners by a C function of two native values, without the interpreter."""

import cython

from callboard.core.asserting cimport holds
from callboard.scheduling.flow.values cimport Value, Values
from callboard.streams.programs.joins.finder cimport Finder
from callboard.streams.programs.joins.kept cimport Kept, WindowRule
from callboard.streams.programs.values cimport lot_of

# From so many comparisons on, others may have the interpreter meanwhile.
cdef size_t MANY = 4096
# So many rows are read at once when a join goes on with a snapshot.
cdef Py_ssize_t LOT = 64


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
        self.of_number, self.gone = {}, []

    cdef Finder go_on(self, list rows):
        cdef Py_ssize_t begin
        for begin in range(0, len(rows), LOT):
            self.find(rows[begin:begin + LOT])  # what they find was found before
        return self

    cdef list find(self, list rows):
        cdef Kept kept, other
        cdef list found = [], partners
        cdef size_t i
        for kept in rows:
            partners = []
            found.append(partners)
            self.join.add(kept.side, kept.number)
            try:
                self.expire(kept.time)
                if not kept.is_alone:
                    self.compare(kept.row)
                self.keep(kept)
            except Exception as error:  # of its time, or its kind
                partners.append((None, error))
                self.join.refuse()
                self.push_out(kept)
        if self.join.due() < MANY:
            self.match()
        else:
            with nogil:
                self.match()
        self.compared = self.join.compared()
        for i in range(self.join.matches.size()):
            kept = rows[self.join.matches[i].row]
            other = self.of_number[self.join.matches[i].partner]
            if not (other.failed or (self.once and kept.side == 1 and other.matched)):
                (<list>found[self.join.matches[i].row]).append(other)
        for number in self.gone:
            del self.of_number[number]
        self.gone.clear()
        assert holds(len(self.of_number) == len(self.windows[0]) + len(self.windows[1]))
        return found

    cdef int compare(self, object row) except -1:
        """Have a row compared. Raises TypeError and ValueError."""
        cdef Py_ssize_t at
        cdef Values* lot = lot_of([row], &at)
        self.join.compare(lot.begin()[0])
        lot.free()
        return 0

    cdef int match(self) except -1 nogil:
        cdef size_t row, place
        cdef const Value* mine
        cdef const Value* others
        cdef bint is_partner
        for row in range(self.join.rows()):
            if self.join.begin(row):
                mine, others = self.join.value(row), self.join.others(row)
                for place in range(self.join.count(row)):
                    if self.join.side(row) == 0:
                        is_partner = self.predicate.matches(mine, others + place)
                    else:
                        is_partner = self.predicate.matches(others + place, mine)
                    if is_partner:
                        self.join.found(row, place)
            self.join.end(row)
        return 0

    cdef int stored(self, Kept kept) except -1:
        self.join.store()
        assert holds(kept.number not in self.of_number)
        self.of_number[kept.number] = kept
        return 0

    cdef int left(self, Kept kept) except -1:
        self.join.expire(kept.side)
        self.gone.append(kept.number)
        return 0
