cdef class Access:
    # The right to run an actor's code, of one at a time: the dispatch on a worker, or a step on the event loop.
    cdef object lock          # of threading: its owner may
    cdef object loop          # of asyncio, once a step had to wait
    cdef dict waiting         # step -> the future of asyncio that it waits for, in the order in which they came
    cdef list begun           # errands that the dispatch in work leaves to the loop
    cdef dict unbegun         # flights of which the loop has run nothing yet, in their order
    cdef int failed           # flights that have failed on the loop, of which the worker has not heard

    cdef object enter_on_loop(self, object step)
    cdef void leave_on_loop(self) noexcept
    cdef void enter_on_worker(self) noexcept
    cdef void leave_on_worker(self) noexcept
    cdef bint try_enter(self, object step) except -1
    cdef int let_go_on(self, object step) except -1
