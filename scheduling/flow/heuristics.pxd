from libc.stdint cimport int64_t, uint32_t

from callboard.scheduling.priority cimport PriorityPolicy, ReadyQueue

cdef extern from "callboard/scheduling/flow/heuristics.hpp" namespace "callboard" nogil:
    enum HeuristicKind "callboard::Heuristic::Kind":
        queue_size_throttling "callboard::Heuristic::queue_size_throttling"
        last_in_pipeline "callboard::Heuristic::last_in_pipeline"
        estimated_time "callboard::Heuristic::estimated_time"
        current_throughput "callboard::Heuristic::current_throughput"
        custom "callboard::Heuristic::custom"


cdef class Heuristic(PriorityPolicy):
    cdef ReadyQueue queue
    cdef HeuristicKind kind
    cdef double capacity       # rows
    cdef int64_t window_ns
