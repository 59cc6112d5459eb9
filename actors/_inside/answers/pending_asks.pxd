from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Waiter


cdef object circle(Waiter waiter, Future asked, Future awaited)
cdef object lengthen(Future asked, Future other)


cdef class Deadline:
    cdef readonly double due      # by the system's clock, in seconds
    cdef readonly object seconds  # how long it was given
    cdef readonly Future future   # None when it is answered


cdef class Deadlines:
    cdef public double wakes_at   # when the timers' thread looks at them, at the latest
    cdef public bint started      # there is a thread that looks at them
    cdef public bint closed
    cdef public bint logical      # the clock is not the machine's
    cdef list asks

    cdef double due_after(self, timeout) except? -1
    cdef int note(self, Future future, double due, timeout) except -1
