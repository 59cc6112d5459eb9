"""Placement policies choose an actor's worker.

A policy runs at a spawn and at a rebalance, never when a message is sent, so plain Python is fast
enough.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError, PolicyError
from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.scheduling.handle import Handle
from callboard.scheduling.worker import WorkerThread


class PlacementPolicy:
    """Chooses a worker for each actor, at its spawn and at a rebalance. The base of these policies.

    Subclass it and define `place`. A policy is called by every thread that spawns, and on a
    free-threaded build by several at a time. If it raises, the spawn fails with PolicyError.

    With `timed = True` in the class, each dispatch is measured.
    """

    __dir__ = public_names

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return one of `workers` for `actor`, which has not run yet. In the spawning thread."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method `place`")

    def arrange(
        self, actors: Sequence[Handle], workers: Sequence[WorkerThread]
    ) -> Sequence[WorkerThread]:
        """Return one of `workers` for each of `actors`, which are already on workers.

        Called for a rebalance, in the calling thread. By default it calls `place` for each actor.
        """
        return [self.place(actor, workers) for actor in actors]

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__}>"


class RoundRobin(PlacementPolicy):
    """Each worker in turn (Prokesch 2011, section 5.4.2)."""

    def __init__(self) -> None:
        self._turn = iter(range(sys.maxsize))  # itertools.count is not pickled by 3.14
        self._size = 1

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker whose turn it is."""
        return workers[next(self._turn) // self._size % len(workers)]

    def arrange(
        self, actors: Sequence[Handle], workers: Sequence[WorkerThread]
    ) -> Sequence[WorkerThread]:
        """Return the workers that `place` would choose from the start."""
        return [workers[turn // self._size % len(workers)] for turn in range(len(actors))]


class Blocks(RoundRobin):
    """Groups of `size` actors, in the order in which they are spawned, on each worker in turn.

    For pipelines, in which neighbours exchange messages: this is cheapest on one worker.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = checks.whole("the size of Blocks", size, error=ConfigError)


class Balanced(PlacementPolicy):
    """The same number of actors of each class on each worker (Prokesch 2011, section 6.2.1).

    Among the workers with the fewest actors of the class, it chooses the one with the fewest actors
    in all. An actor counts until it has stopped and there are no more references to its ref: the
    policy holds weak references, so the runtime need not report each end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._affinities: dict[weakref.ref[Handle], tuple[Any, int]] = {}
        self._counts: dict[Any, list[int]] = {}  # of a class, per worker
        self._totals: list[int] = []
        # Filled by weak references, at any moment, in any thread, perhaps while it has the lock.
        self._gone: deque[weakref.ref[Handle]] = deque()

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker with the fewest actors of the class; count `actor` there."""
        key = weakref.ref(actor, self._gone.append)
        with self._lock:
            while self._gone:
                self._forget(self._gone.popleft())
            before = self._forget(key)
            kind = getattr(actor, "actor_class", None)
            counts = self._counts.setdefault(kind, [0] * len(workers))
            totals = self._totals = self._totals or [0] * len(workers)
            # It stays where it was unless another is better: a rebalance moves few.
            index = min(range(len(workers)), key=lambda i: (counts[i], i != before, totals[i]))
            counts[index] += 1
            totals[index] += 1
            self._affinities[key] = kind, index
        return workers[index]

    def _forget(self, key: weakref.ref[Handle]) -> int | None:
        """Take an actor out of the counts; return its worker's index."""
        kind, index = self._affinities.pop(key, (None, None))
        if index is None:
            return None
        self._totals[index] -= 1
        counts = self._counts[kind]
        counts[index] -= 1
        if not any(counts):
            del self._counts[kind]
        return index


class LeastLoaded(PlacementPolicy):
    """The worker that recently spent the least time in actors.

    "Recently" means between the policy's last two measurements. It measures when it has to place an
    actor and `window` seconds have passed. A newly placed actor has no cost yet, and counts as the
    mean of the others. A rebalance uses each actor's cost since the last one, and moves few actors:
    it ends when all loads are within a tenth of their mean, or no single move helps.
    """

    timed = True

    def __init__(self, window: float = 1.0) -> None:
        seconds = checks.seconds("the window of LeastLoaded", window, zero=False, error=ConfigError)
        self._window_ns = int(seconds * 1e9)
        self._lock = threading.Lock()
        self._since = 0
        self._before: list[int] = []  # each worker's time in actors at the window's begin
        self._load: list[int] = []  # ... and spent in the window before it
        self._placed: list[int] = []  # on each worker in this window
        self._count = 0  # of actors, ever placed
        self._costs: weakref.WeakKeyDictionary[Handle, int] = weakref.WeakKeyDictionary()

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker with the smallest measured and expected load."""
        with self._lock:
            self._look(workers)
            # 1 before the first measurement: then the worker with the fewest new actors wins.
            each = max(1, sum(self._load) // max(1, self._count))
            index = min(range(len(workers)), key=lambda i: self._load[i] + self._placed[i] * each)
            self._placed[index] += 1
            self._count += 1
        return workers[index]

    def _look(self, workers: Sequence[WorkerThread]) -> None:
        now = time.monotonic_ns()
        if self._load and now - self._since < self._window_ns:
            return
        busy = [worker.busy_ns for worker in workers]
        before = self._before or [0] * len(workers)
        self._load = [after - earlier for after, earlier in zip(busy, before, strict=True)]
        self._before = busy
        self._placed = [0] * len(workers)
        self._since = now

    def arrange(
        self, actors: Sequence[Handle], workers: Sequence[WorkerThread]
    ) -> Sequence[WorkerThread]:
        """Return workers that balance the measured loads with few moves."""
        with self._lock:
            costs = [actor._busy_ns - self._costs.get(actor, 0) for actor in actors]
            for actor in actors:
                self._costs[actor] = actor._busy_ns
        affinities = [workers.index(actor.worker) for actor in actors]
        return [workers[index] for index in _levelled(costs, affinities, len(workers))]


class Fixed(PlacementPolicy):
    """The worker with the index `worker`, counted from 0."""

    def __init__(self, worker: int) -> None:
        self._index = checks.whole("the worker of Fixed", worker, 0, error=ConfigError)

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker. Raises PolicyError if the system has fewer."""
        if self._index >= len(workers):
            raise PolicyError(
                f"there is no worker {self._index}; the system has the workers 0 to "
                f"{len(workers) - 1}"
            )
        return workers[self._index]


class Near(PlacementPolicy):
    """The current worker of another actor, for actors that exchange many messages."""

    def __init__(self, actor: Handle) -> None:
        if not isinstance(actor, Handle):
            raise ConfigError(f"Near expects the ref of an actor, got {safe_repr(actor)}")
        self._actor = actor

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the other actor's worker. Raises PolicyError if it is not one of `workers`."""
        worker = self._actor.worker
        if worker is None or worker not in workers:
            raise PolicyError(
                f"no actor can be near {self._actor!r}: it is dedicated, or in another system"
            )
        return worker


def _levelled(costs: Sequence[int], affinities: Sequence[int], workers: int) -> list[int]:
    """Return affinities with about equal sums of costs, reached by few moves.

    Move from the most to the least loaded worker the actor whose cost is nearest to half of their
    difference, while that makes the difference smaller. Each move lowers the sum of the squared
    loads, so the loop ends.
    """
    affinities = list(affinities)
    loads = [0] * workers
    for cost, index in zip(costs, affinities, strict=True):
        loads[index] += cost
    enough = sum(loads) / workers / 10
    while True:
        most, least = loads.index(max(loads)), loads.index(min(loads))
        gap = loads[most] - loads[least]
        fitting = [i for i, index in enumerate(affinities) if index == most and 0 < costs[i] < gap]
        if gap <= enough or not fitting:
            return affinities
        chosen = min(fitting, key=lambda i: abs(costs[i] - gap / 2))
        affinities[chosen] = least
        loads[most] -= costs[chosen]
        loads[least] += costs[chosen]


def rebalance(
    actors: Sequence[Handle], workers: Sequence[WorkerThread], policy: PlacementPolicy
) -> list[tuple[Handle, WorkerThread]]:
    """Return the moves of `actors` to `workers` by a policy, without making them.

    Dedicated actors stay. Raises PolicyError if the policy raises, or returns something that is not
    one of `workers`.
    """
    members = set(workers)
    # A dedicated actor that has just ended has a worker of the team.
    movable = [actor for actor in actors if actor.worker in members and not actor._is_dedicated]
    try:
        affinities = list(policy.arrange(movable, workers))
    except Exception as error:
        raise PolicyError(
            f"{safe_repr(policy)} failed to arrange {len(movable)} actors: {safe_repr(error)}"
        ) from error
    if len(affinities) != len(movable):
        raise PolicyError(
            f"{safe_repr(policy)} arranged {len(affinities)} actors instead of {len(movable)}"
        )
    for actor, worker in zip(movable, affinities, strict=True):
        if not isinstance(worker, WorkerThread) or worker not in members:
            raise PolicyError(
                f"{safe_repr(policy)} arranged {actor!r} on {safe_repr(worker)}, "
                "which is not a worker"
            )
    return [
        (actor, worker)
        for actor, worker in zip(movable, affinities, strict=True)
        if worker is not actor.worker
    ]


def make_moves(moves: Sequence[tuple[Handle, WorkerThread]]) -> int:
    """Have workers take over actors, and return how many."""
    for actor, worker in moves:
        worker.take_over(actor)
    return len(moves)
