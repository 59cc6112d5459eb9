"""The browsers that show a dashboard: each has its own views of systems."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from callboard.core.errors import CallboardError
from callboard.dashboard.drawings import Drawing
from callboard.dashboard.servers import RemoteServers
from callboard.dashboard.systems import KnownSystems, Observing
from callboard.observing.top_frames import TopFrame, frame_of

MOST_VIEWERS = 8
MOST_BOXES = 300
"""Runs with more boxes are not drawn."""
FORGOTTEN_AFTER = 60.0
"""Seconds without a question after which a browser counts as closed."""
LIST_EVERY = 0.9
"""Seconds between two searches for systems and looks at remote servers."""


@dataclass
class _Viewer:
    begin: Callable[[], Observing]
    looking: Observing | None = None
    is_forgotten: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    before: dict[str, Any] | None = None
    asked_at: float = 0.0
    drawings: dict[int, Drawing | None] = field(default_factory=dict)
    wanted: list[int] = field(default_factory=list)
    """The numbers of runs whose shapes are not known."""

    def look(self, **question: Any) -> dict[str, Any]:
        """Return the picture that the browser shows next."""
        if self.looking is None:
            self.looking = self.begin()  # here a silent process holds up only this viewer
            if self.is_forgotten:
                self.leave()
                raise ConnectionError("too many browsers are connected to this program")
        now = self.looking.look(**question, shapes=self.wanted)
        before, self.before = self.before, now
        numbers = [graph["number"] for graph in now["graphs"]]
        drawings = {number: self.drawings[number] for number in numbers if number in self.drawings}
        for graph in now["graphs"]:
            if "shape" in graph:
                shape = graph["shape"]
                fits = shape is not None and len(shape[0]) <= MOST_BOXES
                drawings[graph["number"]] = Drawing(shape) if fits else None
        self.drawings = drawings
        self.wanted = [number for number in numbers if number not in drawings]
        values = _values(frame_of(before, now), drawings)
        return values | {key: now[key] for key in ("served", "tree")} | {"kept": now["letters"]}

    def leave(self) -> None:
        """Stop looking."""
        self.is_forgotten = True
        if (close := getattr(self.looking, "close", None)) is not None:
            with suppress(OSError):
                close()


class Viewers:
    """The views by the names that browsers give themselves. Any thread."""

    def __init__(self, systems: KnownSystems, servers: RemoteServers) -> None:
        self._systems = systems
        self._servers = servers
        self._lock = threading.Lock()
        self._viewers: OrderedDict[tuple[str, str], _Viewer] = OrderedDict()
        self._listing = threading.Lock()
        self._listed: list[dict[str, Any]] = []
        self._listed_at = 0.0
        self._known_servers: list[dict[str, Any]] = []

    def picture(self, name: str, key: str, **question: Any) -> dict[str, Any]:
        """Return the next picture of the system with a key, or of the first one without a key.

        Raises CallboardError, OSError; ConnectionError if the system has ended.
        """
        systems = self._list()
        if not key:
            if not systems:
                raise ConnectionError("the system has ended")
            key = systems[0]["key"]
        viewer = self._of((name, key))
        try:
            with viewer.lock:
                seen = viewer.look(**question)
        except (OSError, CallboardError) as error:
            has_ended = isinstance(error, OSError) or viewer.looking is None
            with self._lock:
                if has_ended and self._viewers.get((name, key)) is viewer:
                    self._forget((name, key))
            raise
        return seen | {"systems": systems, "key": key, "servers": self._known_servers}

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            while self._viewers:
                self._forget(next(iter(self._viewers)))

    def _list(self) -> list[dict[str, Any]]:
        # A silent process holds this up for a while, so only one browser waits for the new list.
        if self._listing.acquire(blocking=not self._listed):
            try:
                if time.monotonic() - self._listed_at > LIST_EVERY:
                    self._listed = self._systems.find()
                    self._known_servers = self._servers.look()
                    self._listed_at = time.monotonic()
            finally:
                self._listing.release()
        return self._listed

    def _of(self, name: tuple[str, str]) -> _Viewer:
        now = time.monotonic()
        with self._lock:
            for other, viewer in list(self._viewers.items()):
                if now - viewer.asked_at > FORGOTTEN_AFTER:
                    self._forget(other)
            if name not in self._viewers:
                if len(self._viewers) >= MOST_VIEWERS:
                    self._forget(next(iter(self._viewers)))  # the one that asked longest ago
                self._viewers[name] = _Viewer(partial(self._systems.begin, name[1]))
            self._viewers.move_to_end(name)
            self._viewers[name].asked_at = now
            return self._viewers[name]

    def _forget(self, name: tuple[str, str]) -> None:
        self._viewers.pop(name).leave()


def _values(frame: TopFrame, drawings: dict[int, Drawing | None]) -> dict[str, Any]:
    """Return a frame for JSON, with the operator of each run that has the largest load."""
    found: dict[str, Any] = asdict(frame)
    for run, values in zip(frame.runs, found["runs"], strict=True):
        slowest = run.slowest
        values["slowest"] = None if slowest is None else run.operators.index(slowest)
        drawing = drawings.get(run.number)
        values["drawing"] = None if drawing is None else drawing.of(run)
    return found
