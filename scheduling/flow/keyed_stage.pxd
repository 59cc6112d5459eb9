# A stage with a state for each key: see keyed_stage.hpp.
from libc.stdint cimport uint32_t

from callboard.scheduling.flow.stage cimport Figures, Stage

cdef extern from "callboard/scheduling/flow/keyed_stage.hpp" namespace "callboard" nogil:
    cdef cppclass KeyedStage "callboard::KeyedStage<>"(Stage):
        Figures figures_of(uint32_t partition)
