"""How workers share their work, for Cython: see `stealing.hpp`."""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from callboard.scheduling.forward cimport Context
from callboard.scheduling.worker_core cimport TeamState, Worker

cdef extern from "callboard/scheduling/stealing.hpp" namespace "callboard" nogil:
    void let_steal(TeamState& team, const vector[Worker*]& members)
    bint find_work(Context* context)
    bint sleep(Worker& worker, int64_t nanoseconds)
    bint steal(Worker& worker)
    void consider_stealing(Worker& worker, int64_t now)
