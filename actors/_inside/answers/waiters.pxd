from callboard.core.memory.node cimport Parker
from callboard.scheduling.handle cimport Handle


cdef class Waiter(Handle):
    cdef object awaited(self)
    cdef int wait_for(self, object future, object timeout) except -1
    cdef void withdraw(self, object future) noexcept
    cdef void note_full(self, object to) noexcept
    cdef void resume(self, object future) noexcept


cdef class Wake:
    # A callback that only wakes a waiter: it takes no time, and completes no other future.
    cdef void wake(self, object future) noexcept


cdef class ThreadWake(Wake):
    cdef Parker parker


cdef class AsyncioWake(Wake):
    cdef object loop
    cdef object waiter


cdef class TrioWake(Wake):
    cdef object trio
    cdef object task
    cdef object token
    cdef bint is_over    # used on trio's thread only


cdef bint driven_by_worker() except -1
cdef bint was_run_for_coroutine(object future) except -1
