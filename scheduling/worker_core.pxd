"""Workers without their threads, for Cython. The rules are in `worker.hpp`."""

from callboard.scheduling.cell cimport Cell
from callboard.scheduling.forward cimport ReadySet, TeamState, Worker

cdef extern from "callboard/scheduling/worker.hpp":
    pass
