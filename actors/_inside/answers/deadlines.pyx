"""The timeouts of asks, without a timer for each: nearly all asks are answered long before."""

from libc.math cimport INFINITY
cimport cython

from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.clock cimport wake_on_time as have_thread_wake_on_time

from callboard.core import checks

# When this many asks are noted, those that were answered are forgotten.
cdef Py_ssize_t MANY = 64

cdef double LONGEST = checks.LONGEST


@cython.final
cdef class Deadline:
    """When an ask is to fail, as long as it has no timer."""

    def cancel(self):
        """Forget the ask, which is answered."""
        with cython.critical_section(self):  # the timers' thread may be reading it
            _answered, self.future = self.future, None  # which goes after the section


cdef class Deadlines:
    """The asks of a system that have a timeout, and no timer yet.

    To note one takes no lock, as long as the thread of the timers looks early enough for it.
    """

    def __cinit__(self):
        self.asks = []
        self.wakes_at = INFINITY

    def now(self):
        """Return the time in seconds, from an arbitrary zero."""
        return monotonic_ns() * 1e-9

    def wake_on_time(self):
        """Have the caller's thread wake as soon as its time has come. It is that of the timers."""
        have_thread_wake_on_time()

    def take(self):
        """Return the asks that were noted, and forget them."""
        with cython.critical_section(self):
            asks = self.asks
            self.asks = []
        return asks

    def fall_asleep(self, double until):
        """Set when the thread looks again; return what was set before."""
        with cython.critical_section(self):
            before = self.wakes_at
            self.wakes_at = until
        return before

    def start(self):
        """Start the thread, unless it runs. A caller that gets an error here cannot promise a timeout."""
        raise NotImplementedError

    def see_to(self, double due):
        """Look at what was noted: something is due earlier than `wakes_at`, or there are many."""
        raise NotImplementedError

    cdef double due_after(self, timeout) except? -1:
        """Return the time at which an ask that begins now is due. Raises ValueError for a wrong `timeout`."""
        cdef double seconds = timeout if type(timeout) is float else -1
        if not 0 <= seconds <= LONGEST:
            seconds = checks.seconds("the timeout of ask()", timeout)
        if not self.started:
            self.start()
        return (<double>self.now() if self.logical else monotonic_ns() * 1e-9) + seconds

    cdef int note(self, Future future, double due, timeout) except -1:
        """Fail `future` with AskTimeout if it is not done when it is `due`, or at close."""
        cdef bint urgent
        cdef Deadline deadline = Deadline.__new__(Deadline)
        deadline.due, deadline.seconds, deadline.future = due, float(timeout), future
        with cython.critical_section(future):
            if future.flag.is_set():
                return 0
            assert holds(future._timer is None)
            future._timer = deadline
        with cython.critical_section(self):
            self.asks.append(deadline)
            urgent = due < self.wakes_at or len(self.asks) >= MANY or self.closed or self.logical
        if urgent:
            self.see_to(due)
        return 0
