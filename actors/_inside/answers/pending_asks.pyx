"""Asks without an answer: their timeouts, and circles of actors that wait for each other."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
cimport cython

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Waiter
from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.clock cimport wake_on_time as have_thread_wake_on_time

from callboard.core import checks
from callboard.core.errors import AskDeadlock


# --- circles -------------------------------------------------------------------------------------------
#
# Actors and futures that wait are a graph, whose edges are waits. An actor in the middle of a message waits for
# the future that it awaits. A deferred future waits for the one that it is deferred to. Any other future of an ask
# waits for the actor that was asked, if that is in the middle of a message. Nothing waits for two things, so
# following the edges finds a circle. A thread that would close one first notes its own wait, and then looks: of
# two that close a circle at the same time one sees the other.
#
# Actors that answer each asks with new asks to each other never wait in a circle, and never end: each is free
# again for the next ask. Such a chain of answers grows until an actor has come up in it so often that it is taken
# for one without end.


# How often one actor may come up in a chain of answers: about as deep as Python lets functions call.
cdef int64_t MOST_VISITS = 1_000
# The length at which a chain is looked through for the first time, then at each doubling.
cdef int64_t FIRST_LOOK = 1_024
# How many actors of a circle an error names from its beginning, and how many from its end.
cdef int SHOWN = 10


cdef object circle(Waiter waiter, Future asked, Future awaited):
    """Return an AskDeadlock if what `awaited` waits for, in the end, is `asked`, or None.

    With None for `asked`, if it is an answer of `waiter`, which is in the middle of a message.
    """
    cdef list path = [waiter]
    cdef Future future = awaited
    cdef Future landmark = awaited
    cdef Future following
    cdef Waiter target
    cdef int64_t steps = 0
    cdef int64_t next_landmark = 1
    while future is not None and not future.flag.is_set():
        target = future.target
        if target is not None:
            path.append(target)
        with cython.critical_section(future):
            following = future.deferred_to
        if future is asked or (asked is None and target is waiter and following is None):
            return AskDeadlock("each waits for the next: " + names(path))
        if following is None and target is not None:
            following = target.awaited()
        future = following
        if future is landmark:
            return None  # a circle that others close
        steps += 1
        if steps == next_landmark:  # Brent 1980, "An improved Monte Carlo factorization algorithm"
            landmark = future
            next_landmark *= 2
    return None


cdef str names(list path):
    cdef list shown = path if len(path) <= 2 * SHOWN + 1 else path[:SHOWN] + path[-SHOWN:]
    paths = [waiter._short_path for waiter in shown]
    if len(shown) < len(path):
        paths.insert(SHOWN, f"... {len(path) - 2 * SHOWN} more ...")
    return " -> ".join(paths)


cdef object lengthen(Future asked, Future other):
    """Count the chain of answers that `asked` joined to `other`. Return None, or an AskDeadlock if it has
    no end.

    The asking actor may end after the actor that it asked, so `other` may be deferred already.
    """
    cdef int64_t length
    with cython.critical_section(asked):
        length = asked.length
    while other is not None and other.target is not None:
        length += 1
        with cython.critical_section(other):
            if other.length >= length:
                return None
            other.length = length
            following = other.deferred_to
        if length >= FIRST_LOOK and length & (length - 1) == 0:
            error = without_end(other)
            if error is not None:
                make_void(other, error)
                return error
        other = following
    return None


cdef object without_end(Future last):
    """Return an AskDeadlock if the actor that was asked last came up too often in this chain, or None."""
    cdef Future future = last
    cdef int64_t visits = 0
    cdef list path = []
    while future is not None:
        if visits < 2:
            path.append(future.target)
        if future.target is last.target:
            visits += 1
        future = longest_waiting(future)
    assert holds(visits >= 1)
    if visits < MOST_VISITS:
        return None
    return AskDeadlock(
        f"each answers with what the next will answer: {names(path[::-1])}, "
        f"{visits - 1} times over, and no answer can come"
    )


cdef Future longest_waiting(Future future):
    """Return the future with the longest chain behind it of those that are deferred to this one, or None."""
    cdef Future longest = None
    with cython.critical_section(future):
        callbacks = future.callbacks
        if type(callbacks) is list:
            callbacks = list(callbacks)
    for callback in callbacks if type(callbacks) is list else (callbacks,):
        if isinstance(callback, Future) and (longest is None or (<Future>callback).length > longest.length):
            longest = <Future>callback
    return longest


cdef int make_void(Future future, object error) except -1:
    """Fail the asks at the head of a chain without end: their handlers can ask no further."""
    cdef Future following
    while future is not None and future.target is not None:
        with cython.critical_section(future):
            following = future.deferred_to
        future.complete(None, error)
        future = following
    return 0


# --- timeouts, without a timer for each ask: nearly all are answered long before ------------------------


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
