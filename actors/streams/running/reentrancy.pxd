# The flows that the calling thread works on: see reentrancy.hpp. Only flow.pyx may cimport it.
from libc.stdint cimport uint32_t

from callboard.scheduling.flow.flow cimport Pool, Rest
from callboard.scheduling.flow.fused_stage cimport FusedStage

cdef extern from "callboard/streams/running/reentrancy.hpp" namespace "callboard" nogil:
    Rest run_pool(const void* flow, Pool& pool, uint32_t lane)
    bint help_pool(const void* flow, Pool& pool)
    void call_through(const void* flow, FusedStage& stage)
    bint is_at_work "callboard::AtWork::is_on" (const void* flow)
