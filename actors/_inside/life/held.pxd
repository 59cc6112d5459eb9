cdef class Held:
    cdef void let_go(self, object failure) noexcept
    cdef void claim(self, object task) noexcept
