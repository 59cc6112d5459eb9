"""Attending: an idle worker sleeps on a descriptor, and reads it itself when data come (inline polling)."""

import os

cimport cython

from callboard.core.asserting cimport holds
from callboard.scheduling.worker cimport OtherSleep, WorkerThread, worker_here
from callboard.scheduling.worker_core cimport Worker

from callboard.core.log import log

cdef extern from "unistd.h" nogil:
    int close(int descriptor)

cdef extern from "callboard/scheduling/attending.hpp" namespace "callboard" nogil:
    bint sleep_reading(Worker& worker, int descriptor, int bell, int milliseconds)

# How long an idle worker attends to a descriptor.
cdef int ATTENTIVE_MS = 10


def attend(lender):
    """Let the calling worker read something itself the next time that it is idle.

    An answer is often followed by the next question; then no other thread has to read it and to wake the
    worker.

    While it is idle the worker calls `lender.lend(bell)`, which returns a descriptor that nobody else reads from
    then on, or -1. The worker sleeps until the descriptor can be read, it is woken, or 10 ms are over. To
    get the descriptor back, a thread wakes the worker by `bell`, an eventfd.

    After that the worker calls `lender.take_back(is_readable)`, on its thread and outside of any actor.
    It reads if there is something to read, and returns whether the worker is to attend when it is idle next,
    too. An exception of either method is logged.

    Only the last call before the worker is idle counts. Returns False, and does nothing, if the worker attends
    then anyway, on a thread that is not a worker's, and if no descriptor is left for a bell.
    """
    cdef WorkerThread worker = worker_here()
    cdef _Attention attention
    if worker is None:
        return False
    if worker.sleeper is None:
        attention = _Attention.__new__(_Attention)
        attention.worker = worker.core
        attention.name = worker.name
        attention.hook = &worker.other_sleep
        worker.other_sleep.state = <void*>attention
        worker.other_sleep.sleep = <bint (*)(void*) noexcept nogil>sleep_attending
        worker.other_sleep.wake_up = <void (*)(void*) noexcept nogil>read_after_idling
        worker.other_sleep.end = <void (*)(void*) noexcept>end_attending
        worker.sleeper = attention
    return (<_Attention>worker.sleeper).take_on(lender)


cdef class _Attention:
    """The descriptor that one worker attends to. Its methods are for that worker's thread alone."""

    cdef Worker* worker           # it keeps this
    cdef OtherSleep* hook         # the worker's
    cdef str name                 # likewise
    cdef object lender            # whose descriptor it is to read, or None
    cdef bint keeps               # the lender wants it to, and other lenders have to wait
    cdef int bell                 # that wakes the worker then; -1 until the first time

    def __cinit__(self):
        self.bell = -1

    def __dealloc__(self):
        if self.bell >= 0:
            close(self.bell)

    cdef bint take_on(self, object lender) except -1:
        """Attend to the lender's descriptor when the worker is idle next. False: it cannot."""
        if self.keeps:
            return False
        if self.bell < 0:
            try:
                self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            except OSError:
                return False  # the process may have no more descriptors
        self.lender = lender
        self.hook.is_due = True
        return True

    cdef bint sleep(self) noexcept nogil:
        """Sleep until the descriptor can be read. True: it can; it is given back afterwards."""
        cdef int descriptor = self.borrow()
        if descriptor < 0:
            return False
        if sleep_reading(self.worker[0], descriptor, self.bell, ATTENTIVE_MS):
            return True
        self.give_back(False)
        return False

    cdef int borrow(self) noexcept with gil:
        cdef int descriptor = -1
        self.hook.is_due = self.keeps = False
        assert holds(self.lender is not None and self.bell >= 0)
        try:
            descriptor = self.lender.lend(self.bell)
        except BaseException as error:
            log.error("a worker could not attend to what it answers", worker=self.name, exc_info=error)
        if descriptor < 0:
            self.lender = None
        return descriptor

    cdef void give_back(self, bint is_readable) noexcept with gil:
        lender, self.lender = self.lender, None
        assert holds(lender is not None and not self.keeps)
        try:
            if lender.take_back(is_readable):
                self.lender = lender
                self.hook.is_due = self.keeps = True
        except BaseException as error:
            log.error("a worker could not read what it attends to", worker=self.name, exc_info=error)


# The hook's functions. They borrow their argument: the worker keeps it.

@cython.nonecheck(False)
cdef bint sleep_attending(_Attention attention) noexcept nogil:
    return attention.sleep()


@cython.nonecheck(False)
cdef void read_after_idling(_Attention attention) noexcept nogil:
    attention.give_back(True)


cdef void end_attending(_Attention attention) noexcept:
    if attention.keeps and attention.borrow() >= 0:  # it may have been taken away meanwhile
        attention.give_back(False)
