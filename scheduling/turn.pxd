"""How many messages a dispatch handles, for Cython: see `turn.hpp`."""

from libc.stdint cimport uint32_t

from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context

cdef extern from "callboard/scheduling/turn.hpp" namespace "callboard" nogil:
    uint32_t begin_turn(Cell* cell, Context* context, uint32_t quantum)
    bint goes_on(Context* context, uint32_t handled, uint32_t& limit)
    void end_turn(Context* context, uint32_t limit)
