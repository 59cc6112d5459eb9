"""Each message to the next routee."""

from libc.stdint cimport uint64_t

from callboard.routers.router cimport Routee, Router


cdef class RoundRobinRouter(Router):
    """Sends each message to the next of its refs, in turn. Safe in every thread.

    A message goes straight to the chosen ref, without an actor in between. Each ref handles the messages of one
    sender in the order of sending; between refs there is no order. An actor that has ended is passed over.
    """

    cdef Py_ssize_t turn

    cdef Routee pick(self, uint64_t key):
        cdef tuple routees = self.routees
        cdef Py_ssize_t tries = len(routees)
        cdef Routee routee
        while True:
            if self.turn >= len(routees):
                self.turn = 0
            routee = <Routee>routees[self.turn]
            self.turn += 1
            tries -= 1
            if tries == 0 or not routee.has_ended():
                return routee
