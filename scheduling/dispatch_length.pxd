"""The number of messages that a dispatch handles, for Cython: see `dispatch_length.hpp`."""

from libc.stdint cimport uint32_t

from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context

cdef extern from "callboard/scheduling/dispatch_length.hpp" namespace "callboard" nogil:
    uint32_t begin_dispatch(Cell* cell, Context* context, uint32_t quantum)
    bint goes_on(Context* context, uint32_t handled, uint32_t& limit)
    void end_dispatch(Context* context, uint32_t limit)
