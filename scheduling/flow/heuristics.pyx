"""Heuristics choose the next operator of a stream graph for a free worker.

Prasaad et al. 2018, section 6. A heuristic is a class in `heuristics.hpp`, which chooses without the
interpreter, and a class here, with its name and its options.
"""

cimport cython
from libc.stdint cimport int64_t

from callboard.core.sealed cimport only_by_runtime

from callboard.core.handles import public_names
from callboard.core import checks
from callboard.core.errors import ConfigError

cdef extern from "callboard/scheduling/flow/heuristics.hpp" namespace "callboard" nogil:
    cdef cppclass ChooseByAsking(Chooser):
        ChooseByAsking(Ask ask, void* asker)
    cdef cppclass ChooseByQueueSize(Chooser):
        ChooseByQueueSize(double capacity)
    cdef cppclass ChooseLatest(Chooser):
        ChooseLatest(bint follows)
    cdef cppclass ChooseByTime(Chooser):
        ChooseByTime()
    cdef cppclass ChooseByThroughput(Chooser):
        ChooseByThroughput(int64_t window_ns, int64_t time_slice_ns)


cdef class OperatorView:
    """An operator of a running graph, as heuristics and statistics see it."""

    def __cinit__(self, key=None):
        only_by_runtime(key, self, "the views of operators come from a run")

    @property
    def position(self):
        """Its number in the order of the graph, from 0."""
        return self.stage.position

    @property
    def cost(self):
        """The estimated time for a row, in seconds; 0 while it is unknown."""
        return (self.figures.cost_ns() if self.figures.are_there() else self.stage.cost_ns()) / 1e9

    @property
    def selectivity(self):
        """The estimated number of output rows for an input row."""
        return self.figures.selectivity() if self.figures.are_there() else self.stage.selectivity()

    @property
    def queued(self):
        """The approximate number of rows that wait for it."""
        return self.stage.queued() if self.is_waited_at else 0.0

    @property
    def workers(self):
        """The number of workers that work on it."""
        return self.stage.lanes()

    @property
    def max_workers(self):
        """The number of workers that may work on it at a time."""
        return self.stage.most_lanes

    @property
    def busy(self):
        """The time that workers have worked on it, in seconds."""
        return (self.figures.busy_ns() if self.figures.are_there() else self.stage.busy_ns()) / 1e9

    @property
    def taken(self):
        """The number of its input rows so far."""
        return self.figures.taken() if self.figures.are_there() else self.stage.taken()

    @property
    def given(self):
        """The number of its output rows so far."""
        return self.figures.given() if self.figures.are_there() else self.stage.given()

    def __repr__(self):
        return f"<operator {self.name!r}, {self.queued:.0f} rows wait, {self.cost * 1e6:.3g} us each>"


cdef class Heuristic:
    """The base of heuristics: subclass it and define `choose`.

    `choose(operators)` gets the schedulable operators, at least two, in the order of the graph, and returns one of
    them. It runs on any worker's thread, with the interpreter held, before each time slice, whose time includes it.
    Several threads may call it at once if native operators have their own lanes or the build has no interpreter lock.
    If it raises or returns an invalid value, the last operator is next, and the log reports this once.

    An operator has `name`, `position`, `cost` (seconds per row), `selectivity` (output rows per input row), `queued`
    (waiting rows), `workers` (that run it now), `max_workers`, and `busy` (total seconds of work).
    """

    def __dir__(self):
        return public_names(self)

    def choose(self, operators):
        """Return the operator to work on."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method `choose`")

    def _check(self):
        if type(self).choose is Heuristic.choose and type(self).__module__ != __name__:
            raise ConfigError(f"{type(self).__qualname__} has no method `choose`")

    cdef Chooser* chooser(self, int64_t time_slice_ns, Ask ask, void* asker) except NULL:
        return new ChooseByAsking(ask, asker)


@cython.final
cdef class QueueSizeThrottling(Heuristic):
    """The earliest operator whose output queue is below its threshold (section 6.1, equation 1).

    `capacity` is the number of rows that all queues together may hold; the thresholds are parts of
    it. It throttles only if it is less than the rows that a run admits, at most `batch_size` times
    `window`. With more than that no queue reaches its threshold, and the earliest operator for which
    input waits is next.
    """

    __signature__ = checks.takes(capacity=65536)
    cdef double capacity

    def __cinit__(self, capacity=65536):
        self.capacity = checks.whole("the capacity of QueueSizeThrottling", capacity, error=ConfigError)

    cdef Chooser* chooser(self, int64_t time_slice_ns, Ask ask, void* asker) except NULL:
        return new ChooseByQueueSize(self.capacity)


@cython.final
cdef class LastInPipeline(Heuristic):
    """The latest operator for which input waits (section 6.2): low latency.

    With `follow`, a worker follows its rounds to the next operators, because its caches have their rows.
    It avoids operators to which another worker is about to bring more. This makes a difference with
    several workers. Without `follow` the rule is that of the paper.
    """

    __signature__ = checks.takes(follow=True)
    cdef bint follow

    def __cinit__(self, follow=True):
        self.follow = checks.flag("follow of LastInPipeline", follow, error=ConfigError)

    cdef Chooser* chooser(self, int64_t time_slice_ns, Ask ask, void* asker) except NULL:
        return new ChooseLatest(self.follow)


@cython.final
cdef class EstimatedTime(Heuristic):
    """The operator whose queue would take longest with one more worker (section 6.3, equation 2)."""

    __signature__ = checks.takes()

    def __cinit__(self):
        pass

    cdef Chooser* chooser(self, int64_t time_slice_ns, Ask ask, void* asker) except NULL:
        return new ChooseByTime()


@cython.final
cdef class CurrentThroughput(Heuristic):
    """The operator with the least throughput in this window (section 6.4, equation 3).

    `window` is in seconds.
    """

    __signature__ = checks.takes(window=0.1)
    cdef int64_t window_ns

    def __cinit__(self, window=0.1):
        self.window_ns = <int64_t>(1e9 * <double>checks.seconds(
            "the window of CurrentThroughput", window, zero=False, error=ConfigError))

    cdef Chooser* chooser(self, int64_t time_slice_ns, Ask ask, void* asker) except NULL:
        return new ChooseByThroughput(self.window_ns, time_slice_ns)
