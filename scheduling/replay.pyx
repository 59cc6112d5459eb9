"""Seeded replay: the calling thread is the worker, and a seed decides which ready actor comes next.

One seed is one interleaving. It is the same on every machine and in every version, because nothing
else decides: no clock, no other thread and no hash order. The generator of random numbers is
callboard's own, in `core/mix.hpp`.
"""

import threading

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport acquire
from callboard.core.mix cimport random_number
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.forward cimport Cell
from callboard.scheduling.priority cimport ReadyOrder
from callboard.scheduling.team cimport Team
from callboard.scheduling.worker cimport WorkerThread
from callboard.scheduling.worker_core cimport Worker

from callboard.core.errors import CallboardError


cdef struct RandomOrder:
    uint64_t seed
    uint64_t taken         # random numbers
    vector[Cell*]* cells   # ready, in any order


cdef void put_anywhere(void* state, Cell* cell) noexcept nogil:
    (<RandomOrder*>state).cells.push_back(cell)


cdef Cell* fetch_any(void* state) noexcept nogil:
    order = <RandomOrder*>state
    cdef uint64_t count = order.cells.size()
    cdef uint64_t index
    cdef Cell* cell
    if count == 0:
        return NULL
    # The upper half of the number, scaled: fewer than 2**32 cells are ready at a time.
    index = ((random_number(order.seed, order.taken) >> 32) * count) >> 32
    order.taken += 1
    cell = order.cells[0][index]
    order.cells[0][index] = order.cells.back()
    order.cells.pop_back()
    return cell


cdef class Seeded(ReadyOrder):
    """Dispatch a random ready actor. The same seed gives the same order.

    No actor starves: each ready one has the same chance at every dispatch.
    """

    cdef RandomOrder order

    def __cinit__(self, seed):
        self.order.seed = <uint64_t>(seed & 0xFFFFFFFFFFFFFFFF)
        self.order.cells = new vector[Cell*]()
        self.ready.state = &self.order
        self.ready.put = put_anywhere
        self.ready.fetch = fetch_any

    def __dealloc__(self):
        del self.order.cells


cdef class ManualTeam(Team):
    """A team of one worker, which even dedicated actors live on."""

    def start_dedicated(self, str name, str actor):
        """Return the only worker."""
        return self.workers[0]

    cdef int end_dedicated(self, Cell* cell) except -1:
        return 0


cdef class ManualWorker(WorkerThread):
    """A worker without a thread: the thread that made it runs it, by step_once()."""

    cdef public object trace  # called with (ref, message) for each message that a Python actor takes
    cdef object owner

    def __init__(self, *args):
        self.owner = threading.get_ident()
        self.core.exact = True
        self.team.started = 1

    def start(self):
        """Raise CallboardError: it has no thread."""
        raise CallboardError(f"{self.name} is run by the thread that made it, step by step")

    run = start

    @property
    def is_here(self):
        """Whether the calling thread is the one that may step."""
        return self.owner == threading.get_ident()

    @property
    def is_team_idle(self):
        """Whether no actor is ready, or in the middle of a message."""
        return (
            not self.core.has_ready()
            and self.core.inbox.is_empty()
            and self.core.team.get_waiting(acquire) == 0
        )

    def step_once(self):
        """Dispatch one ready actor. False if no actor is ready.

        An actor may call this in the middle of its message, to dispatch another one.
        Raises CallboardError in any thread but the one that made the worker.
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
