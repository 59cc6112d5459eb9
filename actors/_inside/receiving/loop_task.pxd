from callboard._inside.life.unfinished cimport ConcurrentMessage, StepLock, TaskElsewhere
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef


cdef class LoopTask(TaskElsewhere):
    # A run of an actor's `async def receive` on the event loop of its system.
    cdef ActorRef ref
    cdef object coroutine
    cdef Envelope envelope    # what the actor's cell has in work while the loop runs its code
    cdef object context       # the contextvars that it runs in
    cdef object outcome       # a Future
    cdef object task
    cdef bint launched        # the loop was told of it
    cdef bint cancelled       # the actor is to stop or to restart
    cdef bint withdrawn       # the asker has cancelled the ask
    cdef bint over
    cdef bint recalled              # its message went back before it began
    cdef list postponed             # system messages for when it is over
    cdef ConcurrentMessage message  # whose work this is, if the actor may have many messages in the middle
    cdef StepLock step_lock         # which lets one step at a time run its code
    cdef tuple ending               # how the coroutine ended, while what it sent still waits for room

    cdef void launch(self) noexcept
    cdef bint was_cancelled(self) noexcept
    cdef bint is_of(self, object asked) noexcept
    cdef void withdraw(self) noexcept
    cdef void take_answer(self, object answer) except *
    cdef void collect(self, object answer, object error) except *
    cdef object held_back(self, object step, object error)


cdef LoopTask make_loop_task(ActorRef ref, object coroutine, object variables=*)
