from libc.stdint cimport uint32_t

from callboard.scheduling.forward cimport Cell, Context, Outcome

cdef Outcome run_native(Cell* plain, Context* context, uint32_t quantum) noexcept nogil
