# cython: nonecheck=False
# Nothing here is None: these are the lines that each message passes.
"""The intake of a PriorityMailbox. `ranked.pyx` has its order."""

import heapq

from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.intake cimport MESSAGE, NOTHING, UNFIT, TakeResult
from callboard._inside.sending.letter cimport FENCE, end_sample, open_letter, take_letter
from callboard._inside.sending.ranked cimport Ranked, in_order_of_arrival, push_ranked
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Kind, Node
from callboard.scheduling.context cimport Context

from callboard.core.log import log


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
        cdef Letter letter
        while node != NULL:
            if node.kind > Kind.record:
                end_sample(node, False)
            letter = take_letter(node)
            context.nodes.give(spent, cell.spare)
            if letter.message is FENCE:
                self.fences.append(letter)
            elif not self.find_place(letter):
                give_back(cell, 1)
                self.unfit = letter
                return UNFIT
            node = cell.head.pop(spent)
        if not self.heap:
            self.pass_fences()
            return NOTHING
        assert holds(cell.limits == NULL or cell.limits.count() >= len(self.heap))
        open_letter(self.pop(cell), envelope)
        give_back(cell, 1)
        return MESSAGE

    cdef bint is_empty(self) noexcept:
        return not self.heap and not self.fences

    cdef list take_all(self, ActorCell* cell):
        cdef list letters = self.fences + in_order_of_arrival(self.heap)
        give_back(cell, len(self.heap))
        self.heap = []
        self.fences = []
        self.key = self.unfit = self.misfit = None  # others may hold the ref for long
        return letters

    cdef bint find_place(self, Letter letter) noexcept:
        """Put a letter in the heap. False, with `misfit`, if its key does not fit in."""
        self.arrivals += 1
        try:
            push_ranked(self.heap, self.key, letter, self.arrivals)
        except BaseException as error:
            self.misfit = error
            return False
        return True

    cdef void pass_fences(self) noexcept:
        """All messages before the fences have been handled."""
        cdef Letter letter
        assert holds(not self.heap)  # all messages before them have been handled
        fences, self.fences = self.fences, []
        for letter in fences:
            letter.reply_to.complete(None, None)

    cdef Letter pop(self, ActorCell* cell):
        cdef Ranked ranked = self.heap[0]
        try:
            heapq.heappop(self.heap)
        except BaseException as error:
            # The others are still there, in an order that their keys do not define.
            log.error("keys of a PriorityMailbox cannot be compared", actor=(<object>cell.owner)._short_path,
                      exc_info=error)
        return ranked.letter


cdef inline void give_back(ActorCell* cell, Py_ssize_t messages) noexcept:
    if cell.limits != NULL:
        cell.limits.give_back(messages)
