# Several operators as one stage: see fused_stage.hpp.
from libc.stdint cimport uint32_t

from callboard.scheduling.flow.stage cimport Figures, Stage, Work

cdef extern from "callboard/scheduling/flow/fused_stage.hpp" namespace "callboard" nogil:
    cdef cppclass FusedStage(Stage):
        uint32_t add_member(const Work& work, uint32_t inputs, bint listens)
        void connect_within(uint32_t source, uint32_t to, uint32_t input)
        void connect_out(uint32_t source, Stage& to, uint32_t input)
        uint32_t open(uint32_t to, uint32_t input)
        void finish()
        Figures figures_of(uint32_t member)
        void work_through()
