"""Distributions of actors' times, for Cython: see `actor_times.hpp`."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "callboard/core/monitoring/actor_times.hpp" namespace "callboard" nogil:
    cppclass TimeHistogram:
        @staticmethod
        uint64_t bound_of(size_t bucket)

    const size_t BUCKETS "callboard::TimeHistogram::buckets"

    cppclass ActorTimes:
        ActorTimes(uint32_t workers) except +
        ActorTimes(uint32_t workers, ActorTimes* of_class) except +
        uint32_t workers()
        uint64_t handled(size_t bucket)
        uint64_t waited(size_t bucket)
        uint64_t handled_ns()
        uint64_t waited_ns()
