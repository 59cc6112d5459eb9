"""The registry of a team's workers, with their shared state. Workers know nothing else of their team."""

import threading

from callboard.scheduling.worker_core cimport TeamState


cdef class WorkerRegistry:
    """The workers of one system. The base of Team, which makes and ends them."""

    def __cinit__(self, *args):
        self.state = new TeamState()
        self.workers = []
        self.dedicated = []
        self.lock = threading.RLock()  # a sweep may run actors that end a dedicated worker
        self.monitoring = "off"

    def __dealloc__(self):
        del self.state

    def observe(self, str monitoring, bint timed):
        """Have the workers that are made from now on measure at the level `monitoring`.

        If `timed`, they measure each dispatch even when the level is "off", for a placement policy.
        """
        self.monitoring = monitoring
        self.timed = timed or monitoring != "off"

    def forget_dedicated(self, worker):
        """Forget a dedicated worker, whose thread ends."""
        with self.lock:
            self.dedicated = [other for other in self.dedicated if other is not worker]

    def note_end(self, worker):
        """Note that a worker's thread ends. It is the thread's last call."""
        raise NotImplementedError

    @property
    def everyone(self):
        """The workers that have a thread, and the dedicated ones."""
        with self.lock:
            return self.workers[:self.started] + self.dedicated
