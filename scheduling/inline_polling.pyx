"""Inline polling: an idle worker sleeps on a descriptor, and reads it itself when data arrive."""

import os

cimport cython

from callboard.core.asserting cimport holds
from callboard.scheduling.worker cimport OtherSleep, WorkerThread, worker_here
from callboard.scheduling.worker_core cimport Worker

from callboard.core.log import log

cdef extern from "unistd.h" nogil:
    int close(int descriptor)

cdef extern from "callboard/scheduling/inline_polling.hpp" namespace "callboard" nogil:
    bint sleep_reading(Worker& worker, int descriptor, int wake_fd, int milliseconds)

# The longest sleep on a descriptor.
cdef int POLL_MS = 10


def poll_inline(lender):
    """Have the calling worker sleep on a descriptor, and read it, the next time that it is idle.

    An answer is often followed by the next question. Then no other thread has to read it and wake the worker.

    The idle worker calls `lender.lend(wake_fd)`, which returns a descriptor that no other thread reads from then
    on, or -1. The worker sleeps until the descriptor can be read, another thread wakes it, or 10 ms are over. A
    thread that needs the descriptor back wakes the worker by `wake_fd`, an eventfd.

    Then the worker calls `lender.take_back(is_readable)`, on its own thread and outside of any actor. This method
    reads the available data, and returns whether the worker is to poll again when it is next idle. An exception of
    either method is logged.

    Only the last call before the worker becomes idle counts. Does nothing and returns False if the worker is going
    to poll anyway, on a thread that is not a worker's, and if there are no more descriptors for an eventfd.
    """
    cdef WorkerThread worker = worker_here()
    cdef _InlinePoll poll
    if worker is None:
        return False
    if worker.sleeper is None:
        poll = _InlinePoll.__new__(_InlinePoll)
        poll.worker = worker.core
        poll.name = worker.name
        poll.hook = &worker.other_sleep
        worker.other_sleep.state = <void*>poll
        worker.other_sleep.sleep = <bint (*)(void*) noexcept nogil>sleep_polling
        worker.other_sleep.wake_up = <void (*)(void*) noexcept nogil>read_after_idling
        worker.other_sleep.end = <void (*)(void*) noexcept>end_polling
        worker.sleeper = poll
    return (<_InlinePoll>worker.sleeper).take_on(lender)


cdef class _InlinePoll:
    """A worker's inline polling of one descriptor. Its methods are for that worker's thread alone."""

    cdef Worker* worker           # it keeps this
    cdef OtherSleep* hook         # the worker's
    cdef str name                 # the worker's
    cdef object lender            # the descriptor's owner, or None
    cdef bint keeps               # the lender asked for another poll, and other lenders have to wait
    cdef int wake_fd              # wakes the worker while it polls; -1 until the first time

    def __cinit__(self):
        self.wake_fd = -1

    def __dealloc__(self):
        if self.wake_fd >= 0:
            close(self.wake_fd)

    cdef bint take_on(self, object lender) except -1:
        """Poll the lender's descriptor when the worker is next idle. False: it cannot."""
        if self.keeps:
            return False
        if self.wake_fd < 0:
            try:
                self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
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
        if sleep_reading(self.worker[0], descriptor, self.wake_fd, POLL_MS):
            return True
        self.give_back(False)
        return False

    cdef int borrow(self) noexcept with gil:
        cdef int descriptor = -1
        self.hook.is_due = self.keeps = False
        assert holds(self.lender is not None and self.wake_fd >= 0)
        try:
            descriptor = self.lender.lend(self.wake_fd)
        except BaseException as error:
            log.error("a worker could not borrow a descriptor to poll", worker=self.name, exc_info=error)
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
            log.error("a worker could not read the descriptor that it polls", worker=self.name, exc_info=error)


# The hook's functions. They borrow their argument: the worker keeps it.

@cython.nonecheck(False)
cdef bint sleep_polling(_InlinePoll poll) noexcept nogil:
    return poll.sleep()


@cython.nonecheck(False)
cdef void read_after_idling(_InlinePoll poll) noexcept nogil:
    poll.give_back(True)


cdef void end_polling(_InlinePoll poll) noexcept:
    if poll.keeps and poll.borrow() >= 0:  # its lender may have taken it back
        poll.give_back(False)
