from libc.stdint cimport uint32_t, uint64_t

from callboard.scheduling.context cimport Context

cdef extern from "callboard/_inside/answers/actor_context.hpp" namespace "callboard" nogil:
    cdef cppclass Sampler:
        bint takes(uint32_t every)

    cdef cppclass ActorContext(Context):
        ActorContext()
        uint64_t woken
        uint32_t sent
        bint on_event_loop
        Sampler sampler
        uint32_t completing_at
        void* completing
        void* constructing
        void* awaited

cdef ActorContext* actor_context() noexcept nogil
