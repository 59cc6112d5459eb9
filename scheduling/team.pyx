"""A team: the workers of one system, from the start of the first to the end of the last."""

import threading
import time
import weakref

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.core.clock cimport SIGNAL_CHECK_NS, monotonic_ns
from callboard.core.memory.node cimport acq_rel, acquire, relaxed, release, seq_cst
from callboard.scheduling.cell cimport Cell, dedicated_cell
from callboard.scheduling.context cimport current_context
from callboard.scheduling.worker_registry cimport WorkerRegistry
from callboard.scheduling.stealing cimport let_steal
from callboard.scheduling.worker cimport WorkerThread
from callboard.scheduling.worker_core cimport Worker

from callboard.core.errors import CallboardError
from callboard.scheduling.priority import Fifo


def obstacle_to_waiting(Team team):
    """Say why the calling thread must not wait until `team` is idle or ends; None if it may.

    A dedicated actor may wait for the actors of another system.
    """
    context = current_context()
    if context.worker == NULL:
        if context.current == NULL:
            return None
        # An event loop's thread, in an actor's code.
        if context.current.get_affinity(relaxed).team == team.state:
            return "in an actor would wait for the actor itself"
        return "would block the event loop of another system: spawn the actor with dedicated=True"
    if context.worker.team == team.state:
        return "in an actor would wait for the actor itself"
    if context.current != NULL and context.current.has(dedicated_cell):
        return None
    return "would block a worker of another system: spawn the actor with dedicated=True"


cdef class Team(WorkerRegistry):
    """The workers of one system."""

    def __cinit__(self, bint token):
        self.drainer = threading.Lock()  # its owner waits on state.became_idle; others wait for the lock
        self.token = token
        self.running = set()
        self.followers = weakref.WeakSet()

    def let_steal(self):
        """Let the workers take each other's work. Before the first one starts."""
        cdef vector[Worker*] members
        cdef WorkerThread worker
        for worker in self.workers:
            members.push_back(worker.core)
        let_steal(self.state[0], members)
        self.steals = True

    def set_level(self, int level):
        """Let the first `level` workers run, and suspend the others. In any thread.

        A worker is suspended at the end of its dispatch. Its cells go to a worker that runs, and come back when it
        is resumed. Followers have their lanes do the same. Raises ValueError for an invalid level, and
        CallboardError if no more threads can be started; then nothing changes.
        """
        cdef WorkerThread worker
        cdef WorkerThread other
        cdef int before
        if not 1 <= level <= len(self.workers):
            raise ValueError(f"expected a level from 1 to {len(self.workers)}, got {level}")
        with self.lock:
            if self.level == level or self.state.is_stopping(acquire):
                return
            self.start(1 if self.awaits_need else level)
            before, self.level = self.level, level
            for worker in self.workers[:level]:
                worker.core.set_stand_in(NULL, release)
            for worker in self.workers[level:]:
                other = self.workers[worker.core.index % level]
                worker.core.set_stand_in(other.core, release)
            for worker in self.workers[min(before, level):max(before, level)]:
                worker.core.parker.unpark()
            for follower in self.following():
                follower.follow(level)

    def follow_level(self, follower):
        """Call `follower.follow(level)` now, and at each change of the level, for as long as it lives."""
        with self.lock:
            self.followers.add(follower)
            follower.follow(self.level)

    def following(self):
        """Return the live followers."""
        with self.lock:
            return list(self.followers)

    def unfollow(self, follower):
        """Stop calling `follower`."""
        with self.lock:
            self.followers.discard(follower)

    def need_all(self):
        """Start the threads of all workers of the level, when there is work for more than the first one."""
        with self.lock:
            self.start(self.level)
            self.awaits_need = False

    @property
    def lagging(self):
        """The suspended workers that are still in a dispatch."""
        return [worker for worker in self.workers[self.level:self.started] if worker.current_actor]

    def start(self, int workers):
        """Start the first `workers` threads, except those that have started. In any thread.

        Raises CallboardError if no more threads can be started.
        """
        cdef WorkerThread worker
        with self.lock:
            if self.state.is_stopping(acquire):
                return  # actors that a late spawn makes ready are swept up
            for worker in self.workers[self.started:workers]:
                try:
                    self.start_one(worker)
                except RuntimeError as error:
                    raise CallboardError(
                        f"only {self.started} of {len(self.workers)} workers could be started: {error}"
                    ) from error
                self.started += 1

    cdef int start_one(self, object worker) except -1:
        with self.lock:
            assert holds(worker not in self.running)
            self.running.add(worker)  # before it can come to its end
        try:
            worker.start()
        except BaseException:  # the process may have too many threads
            with self.lock:
                self.running.discard(worker)
            raise
        return 0

    def is_idle(self):
        """Tell whether all workers are idle and no actor is in the middle of a message.

        True means that there was such a moment during the call. Every worker counts its idle times; if
        all were idle with empty inboxes, and a second look finds the same counts, no worker ran between
        the two looks.
        """
        cdef WorkerThread worker
        cdef list counts = []
        cdef list everyone = self.everyone
        for worker in everyone:
            counts.append(worker.core.get_idles(acquire))
        if any(count % 2 == 0 for count in counts):
            return False
        if self.state.get_waiting(acquire) != 0 or self.state.token.has_pending():
            return False
        for worker in everyone:
            if not worker.core.inbox.is_empty():
                return False
        # Ask for all workers again: a dedicated one may have been started since the first look.
        return counts == [(<WorkerThread>worker).core.get_idles(acquire) for worker in self.everyone]

    def add_waiting(self, int64_t cells):
        """Add to the count of what keeps the team from being idle, or subtract from it. In any thread.

        This is the number of actors that are in the middle of a message or back off, and of asks that
        wait for a future of their actor.
        """
        cdef int64_t before = self.state.add_waiting(cells, acq_rel)
        assert holds(before >= 0 and before + cells >= 0)
        if cells < 0 and self.state.is_draining(acquire):
            self.state.became_idle.unpark()  # perhaps no worker will do so

    def wait_until_idle(self, double timeout):
        """Sleep until the team is idle; False if it is not within `timeout` seconds."""
        cdef int64_t deadline = monotonic_ns() + <int64_t>(min(max(timeout, 0.0), 1e9) * 1e9)
        while not self.drainer.acquire(timeout=min(max(deadline - monotonic_ns(), 0), SIGNAL_CHECK_NS) / 1e9):
            if monotonic_ns() >= deadline:
                return self.is_idle()
        try:
            return self.wait_until(deadline)
        finally:
            self.drainer.release()

    cdef bint wait_until(self, int64_t deadline) except -1:
        cdef int64_t left
        cdef bint idle
        while True:
            assert holds(self.drainer.locked())  # one thread waits on `became_idle`
            self.state.set_draining(1, seq_cst)
            idle = self.is_idle()
            left = deadline - monotonic_ns()
            if idle or left <= 0:
                self.state.set_draining(0, relaxed)
                return idle
            # A worker that becomes idle unparks this. The limit is for signals.
            with nogil:
                self.state.became_idle.park_for(min(left, SIGNAL_CHECK_NS))
            PyErr_CheckSignals()

    def start_dedicated(self, str name, str actor):
        """Start a worker for one actor that may block: the wrapper of LPEL (section 5.4.1)."""
        cdef WorkerThread worker
        with self.lock:
            worker = WorkerThread(self, Fifo(), 64, f"{name}-{actor}", dedicated=True)
            self.dedicated = self.dedicated + [worker]
        try:
            self.start_one(worker)
        except BaseException:
            self.forget_dedicated(worker)
            raise
        return worker

    cdef int end_dedicated(self, Cell* cell) except -1:
        """End the actor's dedicated worker, if it has one. Late messages wake the first worker instead."""
        cdef WorkerThread worker
        if not cell.has(dedicated_cell):
            return 0
        worker = <WorkerThread><object>cell.get_affinity(relaxed).owner
        assert holds(not worker.is_ending)
        cell.set_affinity((<WorkerThread>self.workers[0]).core, release)
        worker.is_ending = True
        return 0

    def end(self, double timeout):
        """Join the workers, after tell_stopping(). False: one did not end within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        ended = []
        everyone = self.everyone
        for worker in everyone:
            if worker.thread is not None:
                worker.thread.join(max(deadline - time.monotonic(), 0.0))
                if worker.thread.is_alive():
                    continue
            ended.append(worker)
        with self.lock:
            self.running.difference_update(ended)  # a thread may have ended by an exception
            self.end_if_last()
        return len(ended) == len(everyone)

    def note_end(self, worker):
        """Note that a worker's thread ends."""
        with self.lock:
            self.running.discard(worker)
            self.end_if_last()

    cdef int end_if_last(self) except -1:
        """Dispatch the actors that became ready after the loops ended, if all loops have. The caller has the lock."""
        if not self.running and self.state.is_stopping(acquire):
            self.is_over = True
            self.sweep()
        return 0

    def sweep_if_over(self):
        """Dispatch the actors that the caller made ready, if the workers have ended."""
        with self.lock:
            if self.is_over:
                self.sweep()

    cdef int sweep(self) except -1:
        # Under the lock: a thread that announces an actor and then finds the team still running has
        # announced it before the end's own sweep.
        cdef WorkerThread worker
        cdef bint found = True
        assert holds(self.is_over)
        while found:  # a dispatch on one of them may wake an actor of another
            found = False
            for worker in self.workers + self.dedicated:  # dedicated workers may end before their actors
                found = worker.sweep() or found
        return 0

    def tell_stopping(self):
        """Tell every worker to end its loop when it has no work left."""
        cdef WorkerThread worker
        if self.controller is not None:
            self.controller.end()
        self.state.set_stopping(1, release)
        for worker in self.everyone:
            worker.core.parker.unpark()
