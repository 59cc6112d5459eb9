"""Heuristics: which operator of a stream graph a free worker works on next.

Prasaad et al. 2018, section 6; `heuristics.hpp` computes them. Each is also a priority policy, so
that a system's `priority` can name one: it chooses among the operators of the system's graphs, and
other actors are dispatched in the order in which they became ready.
"""

import inspect

cimport cython

from callboard.scheduling.priority cimport PriorityPolicy, ready_set

from callboard.core import checks
from callboard.core.errors import ConfigError


cdef class Heuristic(PriorityPolicy):
    """The base of one's own heuristics: subclass it and define `choose`.

    `choose(operators)` is given the schedulable operators, at least two, in the order of the graph,
    and answers one of them. It runs on any worker's thread, with the interpreter held, before each
    time slice, so that is its price. If it raises or answers nonsense, the last operator is next,
    and the log says so once. An operator has `name`, `position`, `cost` (seconds a row),
    `selectivity` (rows out for a row in), `queued` (rows that wait), `workers` (at work on it),
    `most_workers`, and `busy` (seconds of work in all).
    """

    def __cinit__(self, *args, **kwargs):
        self.ready = ready_set(&self.queue)
        self.kind = HeuristicKind.custom

    def choose(self, operators):
        """Answer the operator to work on."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method `choose`")

    def _check(self):
        if self.kind == HeuristicKind.custom and type(self).choose is Heuristic.choose:
            raise ConfigError(f"{type(self).__qualname__} has no method `choose`")


cdef object takes(dict options):
    return inspect.Signature([
        inspect.Parameter(option, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for option, default in options.items()
    ])


@cython.final
cdef class QueueSizeThrottling(Heuristic):
    """The earliest operator whose output queue is below its threshold (section 6.1, equation 1).

    `capacity` is how many rows all queues may hold together; the thresholds are parts of it.
    """

    __signature__ = takes({"capacity": 65536})

    def __cinit__(self, capacity=65536):
        self.kind = HeuristicKind.queue_size_throttling
        self.capacity = checks.whole("the capacity of QueueSizeThrottling", capacity, error=ConfigError)


@cython.final
cdef class LastInPipeline(Heuristic):
    """The latest operator for which something waits (section 6.2): low latency."""

    __signature__ = takes({})

    def __cinit__(self):
        self.kind = HeuristicKind.last_in_pipeline


@cython.final
cdef class EstimatedTime(Heuristic):
    """The operator whose queue would take longest with one worker more (section 6.3, equation 2)."""

    __signature__ = takes({})

    def __cinit__(self):
        self.kind = HeuristicKind.estimated_time


@cython.final
cdef class CurrentThroughput(Heuristic):
    """The operator with the least throughput in this window (section 6.4, equation 3).

    `window` is in seconds.
    """

    __signature__ = takes({"window": 0.1})

    def __cinit__(self, window=0.1):
        self.kind = HeuristicKind.current_throughput
        self.window_ns = <int64_t>(1e9 * <double>checks.seconds(
            "the window of CurrentThroughput", window, zero=False, error=ConfigError))
