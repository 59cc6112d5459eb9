"""Seeded replay: the calling thread is the worker, and a seed decides which ready actor comes next.

One seed is one interleaving. It is the same on every machine and in every version, because nothing
else decides: no clock, no other thread and no hash order. The generator of random numbers is our
own.
"""

import threading

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport acquire
from callboard.core.mix cimport random_number
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.forward cimport Cell
from callboard.scheduling.priority cimport PriorityPolicy
from callboard.scheduling.team cimport Team
from callboard.scheduling.worker cimport WorkerThread
from callboard.scheduling.worker_core cimport Worker

from callboard.core.errors import CallboardError


cdef struct Deck:
    uint64_t seed
    uint64_t taken         # random numbers, so far
    vector[Cell*]* cells   # ready, in any order


cdef void put_anywhere(void* state, Cell* cell) noexcept nogil:
    (<Deck*>state).cells.push_back(cell)


cdef Cell* fetch_any(void* state) noexcept nogil:
    deck = <Deck*>state
    cdef uint64_t count = deck.cells.size()
    cdef uint64_t index
    cdef Cell* cell
    if count == 0:
        return NULL
    # The upper half of the number, scaled: fewer than 2**32 cells are ready at a time.
    index = ((random_number(deck.seed, deck.taken) >> 32) * count) >> 32
    deck.taken += 1
    cell = deck.cells[0][index]
    deck.cells[0][index] = deck.cells.back()
    deck.cells.pop_back()
    return cell


cdef class Seeded(PriorityPolicy):
    """Dispatch any of the ready actors, chosen by a random number. The same seed chooses the same.

    No actor starves: each ready one has the same chance at every dispatch.
    """

    cdef Deck deck

    def __cinit__(self, seed):
        self.deck.seed = <uint64_t>(seed & 0xFFFFFFFFFFFFFFFF)
        self.deck.cells = new vector[Cell*]()
        self.ready.state = &self.deck
        self.ready.put = put_anywhere
        self.ready.fetch = fetch_any

    def __dealloc__(self):
        del self.deck.cells


cdef class ManualTeam(Team):
    """A team of one worker, which even dedicated actors live on."""

    def hire(self, str name, str actor):
        """Return the one worker there is."""
        return self.workers[0]

    cdef int retire(self, Cell* cell) except -1:
        return 0


cdef class ManualWorker(WorkerThread):
    """A worker without a thread: the thread that made it is its own while that calls step_once()."""

    cdef public object trace  # called with (ref, message) for each message that a Python actor takes
    cdef object owner

    def __init__(self, *args):
        self.owner = threading.get_ident()
        self.core.exact = True
        self.team.started = 1

    def start(self):
        """Refuse: it has no thread."""
        raise CallboardError(f"{self.name} is run by the thread that made it, and step by step")

    run = start

    @property
    def is_here(self):
        """Whether the calling thread is the one that may step."""
        return self.owner == threading.get_ident()

    @property
    def is_team_idle(self):
        """Nothing is ready, and no actor is in the middle of a message."""
        return (
            not self.core.has_ready()
            and self.core.inbox.is_empty()
            and self.core.team.get_waiting(acquire) == 0
        )

    def step_once(self):
        """Dispatch one ready actor. False if there is none.

        Within an actor, the others are dispatched while that one is in the middle of its message.
        Raises CallboardError in a thread that is not the worker's.
        """
        if not self.is_here:
            raise CallboardError(
                f"{threading.current_thread().name} cannot run {self.name}: "
                "a manual system is run by the thread that made it"
            )
        cdef Context* context = current_context()
        cdef Worker* other = context.worker  # of another manual system, or an outer call of this
        cdef void* trace = context.trace
        self.adopt_thread()
        assert holds(self.context == context and context.worker == self.core)
        context.trace = <void*>self.trace if self.trace is not None else NULL
        try:
            return self.step()
        finally:
            self.leave_thread(other)
            context.trace = trace
