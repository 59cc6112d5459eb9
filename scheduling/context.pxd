from callboard.scheduling.cell cimport Context

cdef Context* current_context() noexcept nogil
