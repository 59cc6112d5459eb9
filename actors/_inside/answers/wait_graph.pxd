from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Waiter


cdef object circle(Waiter waiter, Future asked, Future awaited)
cdef object lengthen(Future asked, Future other)
