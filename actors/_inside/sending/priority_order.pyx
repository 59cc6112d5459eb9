# cython: nonecheck=False
# Each message passes these lines. Nothing here is None.
"""The intake of a PriorityMailbox, and the order in which it hands messages out.

First come messages of the runtime that the user's key does not take, such as Terminated. Then come those that have
a key, the least first; last those whose key is NaN. Messages with equal keys keep their order.
"""

import heapq

from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.state cimport MESSAGE, NOTHING, UNFIT, TakeResult
from callboard._inside.sending.stored_envelope cimport FENCE, Carried, end_sample, fill_from, take_stored
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Kind, Node
from callboard.scheduling.context cimport Context

from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.messages import DeadLetter, Terminated


cdef enum:
    FIRST
    BY_KEY
    LAST


cdef class Ranked:
    """An envelope with its rank in the order."""

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
    # A class without an `==` says nothing of what is equal.
    if key == other or type(key).__eq__ is object.__eq__:
        return 0
    raise TypeError(
        f"a PriorityMailbox cannot order the keys {safe_repr(key)} and {safe_repr(other)}: "
        "neither is less, and they are not equal")


cdef int push_ranked(list heap, object key, StoredEnvelope stored, uint64_t arrival) except -1:
    """Put an envelope in its place, by its message's key. If it raises, the heap is as it was."""
    cdef Ranked ranked = Ranked.__new__(Ranked)
    ranked.stored = stored
    ranked.arrival = arrival
    try:
        ranked.key = key(stored.message)
        ranked.rank = rank_of(ranked.key)
        push(heap, ranked)
    except BaseException:
        if not is_of_runtime(stored):
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
    key < key  # None, say, is an error of this message, not of another that is compared with it
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


cdef bint is_of_runtime(StoredEnvelope stored) noexcept:
    """Tell whether the runtime sent the message by itself, and no code that knows of the key."""
    if isinstance(stored.message, (Terminated, DeadLetter)):
        return True
    return isinstance(stored.sender, Carried) and (<Carried>stored.sender).is_of_timer


cdef list in_order_of_arrival(list heap):
    """Return the envelopes of a heap."""
    return [(<Ranked>ranked).stored for ranked in sorted(heap, key=arrival_of)]


def arrival_of(Ranked ranked):
    """Return its number in the order of arrival."""
    return ranked.arrival


# --- the intake ----------------------------------------------------------------------------------------


cdef class PriorityIntake(Intake):
    """Moves what arrived to a heap, and hands out what has the least key."""

    def __cinit__(self, key):
        self.key = key
        self.knows_timers = True
        self.heap = []
        self.fences = []

    cdef TakeResult take(self, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
        cdef Node* spent = NULL
        cdef Node* node = cell.head.pop(spent)
        cdef StoredEnvelope stored
        while node != NULL:
            if node.kind > Kind.record:
                end_sample(node, False)
            stored = take_stored(node)
            context.nodes.give(spent, cell.spare)
            if stored.message is FENCE:
                self.fences.append(stored)
            elif not self.find_place(stored):
                give_back(cell, 1)
                self.unfit = stored
                return UNFIT
            node = cell.head.pop(spent)
        if not self.heap:
            self.pass_fences()
            return NOTHING
        assert holds(cell.limits == NULL or cell.limits.count() >= len(self.heap))
        fill_from(self.pop(cell), envelope)
        give_back(cell, 1)
        return MESSAGE

    cdef bint is_empty(self) noexcept:
        return not self.heap and not self.fences

    cdef list take_all(self, ActorCell* cell):
        cdef list envelopes = self.fences + in_order_of_arrival(self.heap)
        give_back(cell, len(self.heap))
        self.heap = []
        self.fences = []
        self.key = self.unfit = self.misfit = None  # others may hold the ref for long
        return envelopes

    cdef bint find_place(self, StoredEnvelope stored) noexcept:
        """Put an envelope in the heap. False, with `misfit`, if its key does not fit in."""
        self.arrivals += 1
        try:
            push_ranked(self.heap, self.key, stored, self.arrivals)
        except BaseException as error:
            self.misfit = error
            return False
        return True

    cdef void pass_fences(self) noexcept:
        """All messages before the fences have been handled."""
        cdef StoredEnvelope stored
        assert holds(not self.heap)  # all messages before them have been handled
        fences, self.fences = self.fences, []
        for stored in fences:
            stored.reply_to.complete(None, None)

    cdef StoredEnvelope pop(self, ActorCell* cell):
        cdef Ranked ranked = self.heap[0]
        try:
            heapq.heappop(self.heap)
        except BaseException as error:
            # The others are still there, in an order that their keys do not define.
            log.error("keys of a PriorityMailbox cannot be compared", actor=(<object>cell.owner)._short_path,
                      exc_info=error)
        return ranked.stored


cdef inline void give_back(ActorCell* cell, Py_ssize_t messages) noexcept:
    if cell.limits != NULL:
        cell.limits.give_back(messages)
