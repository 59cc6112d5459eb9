"""Finding actors of a system: by their names, by their classes, and when they come."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import Any, TypeVar, overload

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime
from callboard.actor import Actor
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError, SystemClosed
from callboard.core.text import safe_repr
from callboard.diagnosis import all_actors

M = TypeVar("M")


def lookup(runtime: Runtime, path: str) -> ActorRef[Any] | None:
    """Return the live actor of this path, or None."""
    named = runtime.named
    found: ActorRef[Any] | None = None
    for name in path.strip("/").split("/"):
        parent, found = found, named.get((found, name))
        if found is None:
            found = _unnamed(runtime.top if parent is None else parent.children, name)
        if found is None:
            return None
    return found


def _unnamed(refs: list[ActorRef[Any]], name: str) -> ActorRef[Any] | None:
    """Return the one of these actors that was spawned without a name, and is called so."""
    number = name.rpartition("-")[2]
    if not number.isdecimal():
        return None
    same = (ref for ref in refs if ref.number == int(number))
    return next((ref for ref in same if ref.name == name), None)


class ActorToCome(Future[ActorRef[Any]]):
    """Done when the actor at a path is there."""

    __slots__ = ("_runtime", "path")

    def __init__(self, runtime: Runtime, path: str) -> None:
        super().__init__()
        self._runtime = runtime
        self.path = path

    @property
    def _system(self) -> Any:
        return self._runtime.system

    @property
    def _what(self) -> str:
        return f"an actor at {self.path}"


class Expected:
    """Futures of actors that are to come."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = Lock()
        self._futures: dict[ActorToCome, None] = {}

    def add(self, future: ActorToCome) -> None:
        """Complete `future` when its actor is there, or the system has stopped."""
        with self._lock:
            self._futures[future] = None
        future.add_done_callback(self._forget)
        self.look()

    def look(self) -> None:
        """Complete what can be by now. In any thread, after each spawn and at the stop."""
        if not self._futures:
            return
        with self._lock:
            waiting = list(self._futures)
        for future in waiting:
            found = lookup(self._runtime, future.path)
            if found is not None:
                future.set_result(found)
            elif self._runtime.closing:
                name, what = self._runtime.name, f"no actor came at {future.path!r}"
                future.set_exception(SystemClosed(f"the system {name!r} was stopped: {what}"))

    def _forget(self, future: Future[ActorRef[Any]]) -> None:
        with self._lock:
            self._futures.pop(future, None)  # type: ignore[call-overload]


class Directory:
    """The part of ActorSystem that finds actors."""

    _runtime: Runtime

    @overload
    def find(self, what: str, /) -> ActorRef[Any]: ...

    @overload
    def find(self, what: type[Actor[M]], /) -> list[ActorRef[M]]: ...

    @overload
    def find(self, what: type, /) -> list[ActorRef[Any]]: ...

    def find(self, what: str | type, /) -> Any:
        """Return the live actor at a path such as `/shop/cart`, or the live actors of a class.

        The names of a path are those given at the spawns; an actor without one is found by its
        `ref.name`, too. The actors of a class, and of its subclasses, are a list, parents before
        their children.

        Raises CallboardError if there is no actor at the path.
        """
        if isinstance(what, type):
            refs = all_actors(self._runtime)
            return [ref for ref in refs if issubclass(ref.actor_class, what) and ref.is_alive]
        path = _path("find()", what)
        found = lookup(self._runtime, path)
        if found is None:
            named = self._runtime.named.values()
            known = ", ".join(sorted(ref.path for ref in named)) or "none"
            raise CallboardError(f"no actor at {path!r}; actors with names: {known}")
        return found

    def afind(self, path: str, timeout: float | None = None) -> Future[ActorRef[Any]]:
        """Return a future of the ref of the actor at `path`: done when that is spawned, or at once.

        The actor's start may still fail: see `ref.ready`. The future fails with AskTimeout after
        `timeout` seconds, and with SystemClosed when the system is stopped. Raises ForkedSystem.
        """
        runtime = self._runtime
        runtime.refuse_fork()
        path = _path("afind()", path)
        seconds = checks.timeout("the timeout of afind()", timeout)
        expected = ActorToCome(runtime, path)
        if seconds is not None:
            error = AskTimeout(f"no actor came at {path!r} in {seconds:g} s")
            timer = runtime.timers.call_after(seconds, partial(expected.set_exception, error))
            expected.add_done_callback(lambda _: timer.cancel())
        self._expected().add(expected)
        return expected

    def _expected(self) -> Expected:
        expects = self._runtime.on_spawn
        if expects is None:
            with _MAKING:
                if self._runtime.on_spawn is None:
                    self._runtime.on_spawn = Expected(self._runtime).look
                expects = self._runtime.on_spawn
        expected: Expected = expects.__self__  # type: ignore[attr-defined]
        return expected


_MAKING = Lock()


def _path(what: str, path: Any) -> str:
    if not isinstance(path, str):
        raise TypeError(f"{what} wants a path such as '/shop/cart', not {safe_repr(path)}")
    return path
