"""The routees that a router has spawned: children of one actor, which replaces those that end."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from callboard import Actor, ActorRef, ActorSystem, Terminated
from callboard._inside.arguments import divided
from callboard._inside.spawn import spawn_divided
from callboard.core import checks
from callboard.core.errors import CallboardError, SystemClosed
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.mailboxes import Mailbox
from callboard.native import NativeActor
from callboard.routers.elastic import AutoScale, Level

# After more than LIMIT failures that ended routees within WINDOW seconds the router gives up.
LIMIT = 10
WINDOW = 60.0


class CountedMailbox(Mailbox):
    """An unbounded mailbox that counts its messages."""

    __slots__ = ()
    capacity = None


class Spawned(Protocol):
    """A router as its family sees it."""

    _family: Family | None

    @property
    def refs(self) -> tuple[Any, ...]:
        """The refs of the routees."""

    def _set_refs(self, refs: Iterable[Any]) -> None:
        """Have these refs from now on, and stop the others when they have done their work."""


R = TypeVar("R", bound=Spawned)


class Family:
    """Spawns, replaces and removes the routees of one router. Safe in every thread."""

    def __init__(
        self,
        spawner: ActorSystem | Actor[Any] | NativeActor,
        recipe: tuple[type, tuple[Any, ...], dict[str, Any], dict[str, Any]],
        elastic: AutoScale | None,
        name: str | None,
    ) -> None:
        system = spawner if isinstance(spawner, ActorSystem) else spawner.system
        self.runtime = system._runtime
        self.router: Spawned | None = None
        self.is_over = False
        self._recipe = recipe
        self._lock = threading.Lock()
        self.parent = spawner.spawn(Routees, self, elastic, name=name)
        self.runtime.dead_letters.expect_wake_ups(self.parent)

    def begin(self, make: Callable[[list[Any]], R], count: int) -> R:
        """Spawn `count` routees and return the router that `make(refs)` makes."""
        with self._lock:  # one that ends at once is replaced when there is a router
            router = make([self._spawn() for _ in range(count)])
            router._family = self
            self.router = router
            return router

    def _spawn(self) -> ActorRef[Any]:
        ref = spawn_divided(self.runtime, self.parent, *self._recipe)
        self.parent.tell(_Spawned(ref))
        return ref

    def resize(self, count: int) -> None:
        """Change their number. Raises CallboardError, ValueError, and like `system.spawn()`."""
        count = checks.whole("the number of routees", count)
        with self._lock:
            assert self.router is not None
            if self.is_over:
                raise CallboardError(f"{self.parent.path} was stopped, and cannot be resized")
            refs = list(self.router.refs)
            old = len(refs)
            try:
                while len(refs) < count:
                    refs.append(self._spawn())
            except BaseException:
                for ref in refs[old:]:
                    ref.stop()
                raise
            self.router._set_refs(refs[:count])

    def replace(self, ended: ActorRef[Any]) -> bool:
        """Spawn another routee in place of one. False: it had been removed before."""
        with self._lock:
            if self.is_over or self.router is None or ended not in self.router.refs:
                return False
            try:
                new = self._spawn()
            except SystemClosed:
                return False
            self.router._set_refs([new if ref is ended else ref for ref in self.router.refs])
            return True

    def stop(self, after_queue: bool) -> None:
        """Stop the routees and their parent. Raises TypeError."""
        checks.flag("after_queue", after_queue, error=TypeError)
        with self._lock:
            self.is_over = True
        if after_queue:
            assert self.router is not None
            for ref in self.router.refs:
                ref.stop(after_queue=True)
            self.parent.tell(_Over())
        else:
            self.parent.stop()


@dataclass(frozen=True, slots=True)
class _Spawned:
    ref: ActorRef[Any]


class _QueueLook:
    """It is time to look at the queues."""


class _Over:
    """The router was stopped."""


class Routees(Actor[Any]):
    """The parent of a router's routees. It ends when the router is stopped, or gives up."""

    def __init__(self, family: Family, elastic: AutoScale | None) -> None:
        self._family = family
        self._elastic = elastic
        self._level = None if elastic is None else Level(elastic)
        self._live: set[ActorRef[Any]] = set()
        self._failures: deque[float] = deque()

    def on_start(self) -> None:
        """Look at the queues, from time to time."""
        if self._elastic is not None:
            self.every(self._elastic.period, _QueueLook())

    def receive(self, message: Any) -> None:
        """Watch routees, replace them when they end, and add or remove some."""
        if isinstance(message, _Spawned):
            self._live.add(message.ref)
            self.watch(message.ref)
        elif isinstance(message, Terminated):
            self._live.discard(message.ref)
            self._replace(message)
        elif isinstance(message, _QueueLook):
            self._look()
        if self._family.is_over and not self._live:
            self.stop()

    def _replace(self, ended: Terminated) -> None:
        if ended.reason in ("failed", "failed to start"):
            now = self._family.runtime.timers.now()
            self._failures.append(now)
            while now - self._failures[0] > WINDOW:
                self._failures.popleft()
            if len(self._failures) > LIMIT:
                error = CallboardError(
                    f"{self.ref.path} gives up: failures ended {len(self._failures)} of its "
                    f"routees within {WINDOW:g} s"
                )
                raise error from ended.error
        if self._family.replace(ended.ref):
            log.warning("a routee is replaced", router=self.ref.path, ended=ended.ref.path)

    def _look(self) -> None:
        router = self._family.router
        if self._level is None or router is None or self._family.is_over:
            return
        refs = router.refs
        waiting = sum(ref._queue_length or 0 for ref in refs)
        wanted = self._level.decide(len(refs), waiting)
        if wanted != len(refs):
            log.info("a router is resized", router=self.ref.path, before=len(refs), now=wanted)
            self._family.resize(wanted)


def spawn_family(
    make: Callable[[list[Any]], R],
    spawner: Any,
    actor: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    count: int | None,
    elastic: AutoScale | tuple[int, int] | None,
    name: str | None,
    is_counted: bool,
    **more: Any,
) -> R:
    """Spawn routees and return the router that `make(refs)` makes. Raises like `system.spawn()`.

    `more` are further options of the router, as they are called there.
    """
    if not isinstance(spawner, ActorSystem | Actor | NativeActor):
        raise TypeError(f"a router expected a system or an actor, got {safe_repr(spawner)}")
    bounds = None if elastic is None else AutoScale._of(elastic)
    if count is None and bounds is None:
        raise TypeError("spawn() expects the number of routees: routees=4, or elastic=(1, 8)")
    if count is None:
        assert bounds is not None
        count = bounds.min_size
    count = checks.whole("the number of routees", count)
    if bounds is not None:
        bounds._refuse("routees", count)
    given = {"routees": count, "elastic": elastic, "name": name, **more}
    actor, args, kwargs, options = divided("spawn()", actor, args, kwargs, given)
    options = {**_defaults(actor, is_counted or bounds is not None), **options}
    family = Family(spawner, (actor, args, kwargs, options), bounds, name)
    try:
        return family.begin(make, count)
    except BaseException:
        family.stop(after_queue=False)
        raise


def _defaults(actor: Any, is_counted: bool) -> dict[str, Any]:
    """Return the options of routees for which neither the spawn nor the class has a value."""
    defaults: dict[str, Any] = {"supervision": "restart"}
    if is_counted:
        defaults["mailbox"] = CountedMailbox()
    return {
        option: value
        for option, value in defaults.items()
        if inspect.getattr_static(actor, option, None) is None
    }
