# The work of native operators as stages: see native_work.hpp.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from callboard.scheduling.flow.stage cimport AtomicCount, Work
from callboard.scheduling.flow.values cimport Output, Value, Values

cdef extern from "callboard/scheduling/flow/native_work.hpp" namespace "callboard" nogil:
    cdef cppclass NativeWork:
        void (*process)(void*, const Value*, uint64_t, Output*) noexcept nogil
        void (*finish)(void*, Output*) noexcept nogil
        uint64_t (*key_of)(void*, const Value*) noexcept nogil
        vector[void*] objects
        void* owner
        const AtomicCount* stopped_at
        uint32_t edges
        void* (*make_error)(void*, const char*) noexcept nogil
        void (*retain_error)(void*) noexcept nogil
        void (*drop_error)(void*) noexcept nogil
        void (*report)(void*, int64_t, void*) noexcept nogil
        Work whole()
        Work undivided()
        Work divider()
        Work partition_work()
        Values* alone(Values* chunk, cbool divided)
        void let_go(Values* chunk)
