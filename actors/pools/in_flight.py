"""Messages in flight to a process: until they are handled, the system is not idle."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from callboard import Future
from callboard.core.errors import CallboardError
from callboard.remote.client.connection import Connection
from callboard.remote.errors import ConnectionLost
from callboard.scheduling.team import Team


class InFlight:
    """Keeps a system from idleness from the first message until all have been handled.

    A context manager, in which a sender sends. Then a flush of the connection says that all was
    handled. If others were sent since, another flush follows.
    """

    def __init__(
        self, team: Team, connection: Connection, before_rest: Callable[[], object]
    ) -> None:
        """`before_rest()` is called when all was handled, before the system can be idle."""
        self._before_rest = before_rest
        self._team = team
        self._connection = connection
        self._lock = Lock()
        self._sending = 0  # threads in the context
        self._sends = 0
        self._seen = 0  # of the sends, what the latest flush is behind
        self._is_busy = False
        self._wants_flush = False  # at the end of what is being sent
        self._waiting: list[Future[None]] = []
        self._end: str | None = None  # why nothing more is sent

    def __enter__(self) -> None:
        """Note that something is about to be sent. Raises ConnectionLost after `close()`."""
        with self._lock:
            if self._end is not None:
                raise ConnectionLost(self._end)
            self._sending += 1
            self._sends += 1
            if self._is_busy:
                return
            self._is_busy = self._wants_flush = True
        self._team.add_waiting(1)

    def __exit__(self, *_: object) -> None:
        """Note that it was sent, or not."""
        with self._lock:
            self._sending -= 1
            if self._sending or not self._wants_flush:
                return
            self._wants_flush = False
            self._seen = self._sends
        self._flush()

    def close(self, why: str) -> None:
        """Refuse all further sends."""
        with self._lock:
            self._end = why

    def rest(self) -> Future[None]:
        """Return a future that is done as soon as nothing is on its way."""
        rest: Future[None] = Future()
        with self._lock:
            if self._is_busy:
                self._waiting.append(rest)
                return rest
        rest.set_result(None)
        return rest

    def _flush(self) -> None:
        try:
            flushed = self._connection.aflush()
        except CallboardError:  # it is closed, and each message has its outcome
            self._come_to_rest()
        else:
            flushed.add_done_callback(self._note_flushed)

    def _note_flushed(self, flushed: Future[Any]) -> None:
        if flushed.exception() is None or self._connection._own_session.is_over:
            self._come_to_rest()
        else:
            self._flush()  # a connection was lost: what has not left goes over the next one

    def _come_to_rest(self) -> None:
        self._before_rest()
        with self._lock:
            if self._sending:
                self._wants_flush = True
                return
            is_behind = self._seen != self._sends
            self._seen = self._sends
            if not is_behind:
                self._is_busy = False
                waiting, self._waiting = self._waiting, []
        if is_behind:
            self._flush()
            return
        self._team.add_waiting(-1)
        for rest in waiting:
            rest.set_result(None)
