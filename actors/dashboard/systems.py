"""The systems that a dashboard shows together: one, and those of processes that belong to it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from callboard.core.errors import CallboardError
from callboard.observing.answers import who
from callboard.observing.commands import systems_of
from callboard.observing.conversation import Watcher
from callboard.observing.endpoint import refuse_another_user
from callboard.observing.watching import SystemView

if TYPE_CHECKING:
    from callboard.system import ActorSystem

OWN = "own"
"""The key of the system in the dashboard's own process."""


class Observing(Protocol):
    """Something that looks at a system: a SystemView in its process, a Watcher in another."""

    @property
    def look(self) -> Callable[..., dict[str, Any]]:
        """Returns the figures since the last look: see SystemView."""
        ...


class KnownSystems(Protocol):
    """The systems that a dashboard may show."""

    def find(self) -> list[dict[str, Any]]:
        """Find them, and return a few figures of each. The first one is shown first."""
        ...

    def begin(self, key: str) -> Observing:
        """Begin to look at the one with this key. Raises CallboardError, OSError."""
        ...


class _Sockets:
    """Systems of other processes, by their sockets."""

    def __init__(self) -> None:
        self._paths: dict[str, Path] = {}

    def find(self, belongs: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        found = [(path, one) for path, one in systems_of(None) if belongs(one)]
        self._paths = {path.stem: path for path, _ in found}
        return [{"key": path.stem, **one} for path, one in found]

    def begin(self, key: str) -> Observing:
        path = self._paths.get(key)
        if path is None:
            raise CallboardError(f"no system has the key {key!r}")
        return Watcher(path, refuse_another_user)


class OwnSystem:
    """A system in this process, and if it is observable, those of the processes that this one has
    started.
    """

    def __init__(self, system: ActorSystem) -> None:
        self._observer = weakref.ref(system._observer)
        self._runtime = system._observer.runtime
        self._children = _Sockets() if system.config.observable else None

    def find(self) -> list[dict[str, Any]]:
        """Return a few figures of each."""
        observer = self._observer()
        found = [] if observer is None else [{"key": OWN, **who(observer)}]
        if self._children is not None:
            found += self._children.find(lambda one: one["parent"] == os.getpid())
        return found

    def begin(self, key: str) -> Observing:
        """Begin to look at one."""
        if key == OWN or self._children is None:
            return SystemView(self._runtime)
        return self._children.begin(key)


class OtherSystems:
    """Systems of other processes: those of a process or a name, and those that these have started.

    Without a name, all.
    """

    def __init__(self, which: str | None) -> None:
        self._which = which
        self._sockets = _Sockets()

    def find(self) -> list[dict[str, Any]]:
        """Return a few figures of each. Raises CallboardError, OSError."""
        everyone = self._sockets.find(lambda _: True)
        which = self._which
        first = [one for one in everyone if which in (None, str(one["pid"]), one["system"])]
        pids = {one["pid"] for one in first}
        if which is None:  # a pool's processes after their parents
            return sorted(first, key=lambda one: one["parent"] in pids)
        return first + [one for one in everyone if one["parent"] in pids and one not in first]

    def begin(self, key: str) -> Observing:
        """Begin to look at one. Raises CallboardError, OSError."""
        return self._sockets.begin(key)
