"""Remote servers whose health a dashboard shows, by the program's connections to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any, Protocol

from callboard._inside.answers.future import Future
from callboard.core.errors import CallboardError, ConfigError
from callboard.core.text import safe_repr, safe_str

SLOW = 2.0
"""Seconds without an answer after which a server is shown as silent."""


class HealthSource(Protocol):
    """A connection to a server, as the dashboard sees it."""

    @property
    def address(self) -> object:
        """Where the server is."""
        ...

    def health(self) -> Future[dict[str, Any]]:
        """Ask the server how it is. Raises CallboardError without a connection."""
        ...


class _Server:
    def __init__(self, connection: HealthSource) -> None:
        self._connection = connection
        self._known: dict[str, Any] = {"state": "asked"}
        self._asked: Future[dict[str, Any]] | None = None
        self._asked_at = 0.0

    def look(self) -> dict[str, Any]:
        asked = self._asked
        if asked is not None and asked.done():
            error = asked.exception()
            self._known = asked.result() if error is None else self._lost(error)
            self._asked = asked = None
        if asked is None:
            self._asked_at = time.monotonic()
            try:
                self._asked = self._connection.health()
            except CallboardError as error:
                self._known = self._lost(error)
        elif (silent := time.monotonic() - self._asked_at) > SLOW:
            self._known = self._known | {"state": f"silent for {silent:.0f} s"}
        return {"address": str(self._connection.address), **self._known}

    def _lost(self, error: BaseException) -> dict[str, Any]:
        return {"state": f"not reached: {safe_str(error)[:200]}"}


class RemoteServers:
    """The servers of connections, by their last answers. A look waits for none. Any thread."""

    def __init__(self, connections: Iterable[Any]) -> None:
        self._lock = threading.Lock()
        self._servers = []
        for one in connections:
            for connection in getattr(one, "shards", (one,)):
                if not hasattr(connection, "health") or not hasattr(connection, "address"):
                    raise ConfigError(
                        f"`servers` expects connections to servers, got {safe_repr(connection)}"
                    )
                self._servers.append(_Server(connection))

    def look(self) -> list[dict[str, Any]]:
        """Return the health of each, for JSON, and ask for the next."""
        with self._lock:
            return [server.look() for server in self._servers]
