"""How cells become ready and are dispatched, for Cython: see `dispatching.hpp`."""

from libc.stdint cimport int64_t, uint64_t

from callboard.mailbox.limits cimport Limits
from callboard.scheduling.cell cimport Cell, Outcome
from callboard.scheduling.context cimport Context

cdef extern from "callboard/scheduling/dispatching.hpp" namespace "callboard" nogil:
    void dispatch(Cell* cell, Context* context, Cell* outer)
    void account(Cell* cell, Context* context, uint64_t messages)
    void charge(Cell* cell, Context* context)
    void make_ready(Cell* cell, Context* context)
    void wait_for_room(Limits& limits, Context* context, int64_t nanoseconds)
