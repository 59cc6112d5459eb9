"""The order of a PriorityMailbox.

First come messages of the runtime that the user's key does not take, such as Terminated. Then come those that have
a key, the least first; last those whose key is NaN. Messages with equal keys keep their order.
"""

import heapq

from callboard._inside.sending.letter cimport Carried
from callboard.core.asserting cimport holds

from callboard.core.text import safe_repr
from callboard.messages import DeadLetter, Terminated

cdef enum:
    FIRST
    BY_KEY
    LAST


cdef class Ranked:
    """A letter with its rank in the order."""

    def __lt__(self, Ranked other):
        return self.comes_before(other)

    cdef bint comes_before(self, Ranked other) except -1:
        if self.rank != other.rank:
            return self.rank < other.rank
        if self.rank == BY_KEY:
            if self.key < other.key:
                return True
            if other.key < self.key:
                return False
            refuse_disorder(self.key, other.key)
        assert holds(self is other or self.arrival != other.arrival)
        return self.arrival < other.arrival


cdef int refuse_disorder(object key, object other) except -1:
    """Raise TypeError for two keys of which neither is less though they differ, as two sets may."""
    # A class that defines no `==` of its own says nothing of what is equal.
    if key == other or type(key).__eq__ is object.__eq__:
        return 0
    raise TypeError(
        f"a PriorityMailbox cannot order the keys {safe_repr(key)} and {safe_repr(other)}: "
        "neither is less, and they are not equal")


cdef int push_ranked(list heap, object key, Letter letter, uint64_t arrival) except -1:
    """Put a letter in its place, by its message's key. If it raises, the heap is as it was."""
    cdef Ranked ranked = Ranked.__new__(Ranked)
    ranked.letter = letter
    ranked.arrival = arrival
    try:
        ranked.key = key(letter.message)
        ranked.rank = rank_of(ranked.key)
        push(heap, ranked)
    except BaseException:
        if not is_of_runtime(letter):
            raise
        ranked.key = None
        ranked.rank = FIRST
        push(heap, ranked)
    return 0


cdef int push(list heap, Ranked ranked) except -1:
    assert holds(ranked.rank == FIRST or ranked.key is not None)
    if ranked.rank == BY_KEY and heap and (<Ranked>heap[0]).rank == FIRST:
        compare_with_a_key(heap, ranked)
    try:
        heapq.heappush(heap, ranked)
    except BaseException:
        # It is in the list by now, though its key cannot be compared with the others'.
        heap[:] = [other for other in heap if other is not ranked]
        heapq.heapify(heap)
        raise
    return 0


cdef int compare_with_a_key(list heap, Ranked ranked) except -1:
    """Raise if the key has no order with others: its way into the heap may meet none of them."""
    cdef Ranked other
    for other in heap:
        if other.rank == BY_KEY:
            ranked.comes_before(other)
            return 0
    return 0


cdef int rank_of(object key) except -1:
    if type(key) is int or type(key) is str:
        return BY_KEY
    if is_nan(key):
        return LAST
    key < key  # None, say, is an error of its own message, and not of the one that meets it
    return BY_KEY


cdef bint is_nan(object key) except -1:
    """Tell whether a key is NaN, which is neither less nor more than others, or has one in it."""
    if isinstance(key, (tuple, list)):
        for part in key:
            if is_nan(part):
                return True
        return False
    try:
        return not key == key
    except ArithmeticError:  # a signalling NaN of `decimal`
        return True


cdef bint is_of_runtime(Letter letter) noexcept:
    """Tell whether the runtime sent the message by itself, and no code that knows of the key."""
    if isinstance(letter.message, (Terminated, DeadLetter)):
        return True
    return isinstance(letter.sender, Carried) and (<Carried>letter.sender).is_of_timer


cdef list in_order_of_arrival(list heap):
    """Return the letters of a heap."""
    return [(<Ranked>ranked).letter for ranked in sorted(heap, key=arrival_of)]


def arrival_of(Ranked ranked):
    """Return how many came before it."""
    return ranked.arrival
