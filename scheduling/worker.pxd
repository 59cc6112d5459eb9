from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.thread_state cimport PyThreadState
from callboard.scheduling.forward cimport Cell, Context, Worker
from callboard.scheduling.worker_registry cimport WorkerRegistry


cdef enum:
    LOOK_AHEAD = 64  # the ready actors that step_only_to() may pass by


# Another way for a worker to sleep than on its parker.
cdef struct OtherSleep:
    bint is_due                                      # when the worker is idle next
    void* state
    bint (*sleep)(void* state) noexcept nogil        # true: `wake_up` is to be called after it slept
    void (*wake_up)(void* state) noexcept nogil
    void (*end)(void* state) noexcept                # the worker's thread ends


cdef class WorkerThread:
    cdef Worker* core
    cdef Context* context
    cdef readonly object policy  # its ReadyOrder, which owns core.ready
    cdef uint32_t nested         # dispatches within dispatches
    cdef object others           # see overflow.pyx
    cdef uint64_t suspensions    # that have ended
    cdef bint is_ending          # its only actor has ended
    cdef bint runs               # on its thread
    cdef OtherSleep other_sleep  # all null until there is one
    cdef object sleeper          # keeps the state of other_sleep alive
    cdef WorkerRegistry team     # keeps the shared state alive
    cdef readonly object thread
    cdef readonly str name
    cdef bytes short_name
    cdef readonly object cpu  # the core that it is pinned to, or None

    cdef void loop_with(self, PyThreadState* state) noexcept nogil
    cdef bint sweep(self) noexcept
    cdef int adopt_thread(self) except -1
    cdef void leave_thread(self, Worker* other) noexcept
    cdef void idle(self) noexcept nogil
    cdef void rest(self) noexcept nogil
    cdef void end_wait(self, char kind, int64_t begin, uint64_t count) noexcept nogil
    cdef void note(self, char kind, int64_t time, int64_t spent, uint64_t count) noexcept nogil
    cdef void log_is_due(self) noexcept nogil
    cdef void hand_log_over(self) noexcept
    cdef void park(self) noexcept nogil
    cdef void tell_drainer(self) noexcept nogil
    cdef bint step(self) noexcept
    cdef bint step_only_to(self, Cell* wanted) noexcept
    cdef void dispatch_or_delegate(self, Cell* cell) noexcept
    cdef void dispatch_nested(self, Cell* cell) noexcept


cdef WorkerThread worker_here()
