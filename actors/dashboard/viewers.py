"""The browsers that look at a dashboard: each has a view of the system of its own."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from callboard.observing.pictures import picture_of

MOST_VIEWERS = 8
FORGOTTEN_AFTER = 60.0
"""Seconds without a question after which a browser is taken for closed."""


class Observing(Protocol):
    """Something that looks at a system: a SystemView in its process, a Watcher in another."""

    def look(self, sort: str, most: int, part: str) -> dict[str, Any]:
        """Return the figures since the last look."""
        ...


@dataclass
class _Viewer:
    looking: Observing
    lock: threading.Lock = field(default_factory=threading.Lock)
    before: dict[str, Any] | None = None
    asked_at: float = 0.0


class Viewers:
    """The views by the names that browsers give themselves. Any thread."""

    def __init__(self, begin: Callable[[], Observing]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._viewers: OrderedDict[str, _Viewer] = OrderedDict()

    def picture(self, name: str, sort: str, most: int, part: str) -> dict[str, Any]:
        """Return what a browser shows now. Raises CallboardError, OSError."""
        viewer = self._of(name)
        with viewer.lock:
            now = viewer.looking.look(sort=sort, most=most, part=part)
            before, viewer.before = viewer.before, now
        return _values(picture_of(before, now))

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            while self._viewers:
                self._forget(next(iter(self._viewers)))

    def _of(self, name: str) -> _Viewer:
        now = time.monotonic()
        with self._lock:
            for other, viewer in list(self._viewers.items()):
                if now - viewer.asked_at > FORGOTTEN_AFTER:
                    self._forget(other)
            if name not in self._viewers:
                if len(self._viewers) >= MOST_VIEWERS:
                    self._forget(next(iter(self._viewers)))  # that which asked longest ago
                self._viewers[name] = _Viewer(self._begin())
            self._viewers.move_to_end(name)
            self._viewers[name].asked_at = now
            return self._viewers[name]

    def _forget(self, name: str) -> None:
        viewer = self._viewers.pop(name)
        if (close := getattr(viewer.looking, "close", None)) is not None:
            with suppress(OSError):
                close()


def _values(picture: Any) -> dict[str, Any]:
    """Return a picture for JSON, with the operator of each run that has the largest load."""
    found: dict[str, Any] = asdict(picture)
    for run, values in zip(picture.runs, found["runs"], strict=True):
        slowest = run.slowest
        values["slowest"] = None if slowest is None else run.operators.index(slowest)
    return found
