"""Each message to the routee that has the least to do."""

from functools import partial

cimport cython
from libc.stdint cimport uint64_t

from callboard.routers.router cimport Routee, Router


cdef class LeastLoadedRouter(Router):
    """Sends each message to the ref with the fewest messages before it; among equals, in turn.

    The messages are those in a mailbox that counts them: that of an actor which the router has spawned, a bounded or
    prioritised one, or any under monitoring. Elsewhere they are the asks of this router without an answer, and an
    actor of this process that is at work has one more. Order and safety are those of RoundRobinRouter.
    """

    _counts = True

    cdef Py_ssize_t turn

    cdef Routee pick(self, uint64_t key):
        cdef tuple routees = self.routees
        cdef Py_ssize_t count = len(routees)
        cdef Py_ssize_t at = self.turn % count
        cdef Py_ssize_t best = at
        cdef Py_ssize_t least = -1
        cdef Py_ssize_t load
        cdef Routee routee
        for _ in range(count):
            routee = <Routee>routees[at]
            if not routee.has_ended():
                load = routee.load()
                if least < 0 or load < least:
                    least = load
                    best = at
                    if load == 0:
                        break
            at += 1
            if at == count:
                at = 0
        self.turn = best + 1
        return <Routee>routees[best]

    cdef int note_asked(self, Routee routee, future) except -1:
        with cython.critical_section(self):
            routee.asks += 1
        future.add_done_callback(partial(self._note_answer, routee))
        return 0

    def _note_answer(self, Routee routee, _):
        with cython.critical_section(self):
            routee.asks -= 1
