"""The directory of a system, which finds actors by path or class, also before they are spawned."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError, SystemClosed
from callboard.core.text import safe_repr
from callboard.diagnosis import all_actors


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
    same = (ref for ref in refs if ref._number == int(number))
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
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ACTOR, self.path)


class Directory:
    """Finds the actors of one system: by path, by class, and when they are spawned."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = Lock()
        self._expected: dict[ActorToCome, None] = {}

    def at(self, path: Any) -> ActorRef[Any]:
        """Return the live actor at a path. Raises CallboardError if there is none, TypeError."""
        found = lookup(self._runtime, _checked("find()", path))
        if found is None:
            named = self._runtime.named.values()
            known = ", ".join(sorted(ref.path for ref in named)) or "none"
            raise CallboardError(f"no actor at {path!r}; named actors: {known}")
        return found

    def of_class(self, cls: type) -> list[ActorRef[Any]]:
        """Return the live actors of a class and of its subclasses, parents before children."""
        refs = all_actors(self._runtime)
        return [ref for ref in refs if issubclass(ref.actor_class, cls) and ref.is_alive]

    def expect(self, path: Any, timeout: float | None) -> ActorToCome:
        """Return a future of the actor at a path: done when it is there, or the system stops."""
        runtime = self._runtime
        runtime.refuse_fork()
        _checked("afind()", path)
        seconds = checks.timeout("the timeout of afind()", timeout)
        future = ActorToCome(runtime, path)
        if seconds is not None:
            error = AskTimeout(f"no actor came at {path!r} in {seconds:g} s")
            timer = runtime.timers.call_after(seconds, partial(future.set_exception, error))
            future.add_done_callback(lambda _: timer.cancel())
        with self._lock:
            self._expected[future] = None
            runtime.on_spawn = self._complete
        future.add_done_callback(self._forget)
        self._complete()
        return future

    def _complete(self) -> None:
        """Complete the futures that can be by now. Any thread; after each spawn, at the stop."""
        if not self._expected:
            return
        with self._lock:
            waiting = list(self._expected)
        for future in waiting:
            found = lookup(self._runtime, future.path)
            if found is not None:
                future.set_result(found)
            elif self._runtime.closing:
                name, what = self._runtime.name, f"no actor came at {future.path!r}"
                future.set_exception(SystemClosed(f"the system {name!r} was stopped: {what}"))

    def _forget(self, future: Future[ActorRef[Any]]) -> None:
        with self._lock:
            self._expected.pop(future, None)  # type: ignore[call-overload]


def _checked(call: str, path: Any) -> str:
    if not isinstance(path, str):
        raise TypeError(f"{call} expects a path such as '/shop/cart', got {safe_repr(path)}")
    return path
