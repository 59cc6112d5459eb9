"""What a worker notes of its dispatches, for Cython: see `recorder.hpp`."""

from libc.stdint cimport int64_t, uint64_t

from callboard.core.records cimport RecordRing
from callboard.scheduling.forward cimport Recorder

cdef extern from "callboard/scheduling/recorder.hpp":
    pass
