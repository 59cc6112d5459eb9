from libc.stdint cimport uint32_t

from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.forward cimport Cell, Context, Outcome


cdef Outcome run_python(Cell* plain, Context* context, uint32_t quantum) noexcept
cdef Outcome run_shared(Cell* plain, Context* context, uint32_t quantum) noexcept
cdef Outcome dead_letter_all(ActorRef ref, Context* context) noexcept


cdef Outcome run_native(Cell* plain, Context* context, uint32_t quantum) noexcept nogil
