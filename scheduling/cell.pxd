"""Cells, for Cython. The rules are in `cell.hpp`."""

from libc.stdint cimport uint32_t

from callboard.scheduling.forward cimport Cell, Context, Outcome, Run

cdef extern from "callboard/scheduling/cell.hpp" namespace "callboard" nogil:
    const uint32_t python_cell
    const uint32_t wants_token
    const uint32_t dedicated_cell
    const uint32_t unpinned_cell
    const uint32_t recorded_cell
    const uint32_t own_times_cell
    const uint32_t first_own_flag
