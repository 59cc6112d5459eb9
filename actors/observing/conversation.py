"""Persistent connections of observers: one question after the other on one connection.

Each has a thread and a view of the system, which end with it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.log import log

WATCH = "watch"
"""The question that begins a conversation."""
GREETING = b"{}\n"
"""The answer to that. The observer waits for it before it asks."""
MOST_CONVERSATIONS = 8
LONGEST_LINE = 65_536
"""The largest question, in bytes."""
SILENCE = 60.0
"""After this number of seconds without a question, the connection ends."""
PATIENCE = 5.0
"""The time in which the observer has to read an answer, in seconds."""


class Connections:
    """Connections of observers, each served by a thread. Any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, None] = {}  # in the order in which they came

    def end(self) -> None:
        """End all of them, since the system is stopped."""
        with self._lock:
            for connection in self._connections:
                shut_down(connection)

    def close_in_child(self) -> None:
        """Close the copies of the connections, in a forked child, without the lock."""
        for connection in self._connections:
            connection.close()


def shut_down(connection: socket.socket) -> None:
    """End a connection, whose thread closes it."""
    with contextlib.suppress(OSError):  # the observer is gone
        connection.shutdown(socket.SHUT_RDWR)


class Conversations(Connections):
    """The observers that stay with one system. Any thread."""

    def __init__(self, name: str, watch: Callable[[], Callable[[str], Any]]) -> None:
        super().__init__(name)
        self._watch = watch
        self._ended = False

    def begin(self, connection: socket.socket) -> None:
        """Take over a connection from the caller, and serve it in a separate thread."""
        mine = socket.socket(fileno=connection.detach())
        with self._lock:
            refused = self._ended or len(self._connections) >= MOST_CONVERSATIONS
            if not refused:
                self._connections[mine] = None
        if refused:
            mine.close()
            return
        thread = threading.Thread(target=self._serve, args=(mine,), name=self._name, daemon=True)
        thread.start()

    def end(self) -> None:
        """End all of them, and begin no more."""
        self._ended = True
        super().end()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as questions:
                answer = self._watch()
                connection.settimeout(PATIENCE)
                connection.sendall(GREETING)
                while True:
                    connection.settimeout(SILENCE)
                    question = questions.readline(LONGEST_LINE)
                    if not question.endswith(b"\n"):
                        return
                    reply = _reply(answer, question)
                    connection.settimeout(PATIENCE)
                    connection.sendall(reply)
        except OSError:
            pass  # the observer is gone, or does not read
        except Exception as error:
            log.error("an observer's request failed", exc_info=error)
        finally:
            with self._lock:
                self._connections.pop(connection, None)


def _reply(answer: Callable[[str], Any], question: bytes) -> bytes:
    try:
        found = answer(question.decode(errors="replace"))
    except (ValueError, CallboardError) as error:
        found = {"error": str(error)}
    return json.dumps(found).encode() + b"\n"


class Watcher:
    """The observer's side: look at a system again and again. One thread.

    Raises OSError if there is none, or if it has too many observers. `look()` raises
    ConnectionError when the system has ended.
    """

    def __init__(self, path: Path, check: Callable[[socket.socket], object]) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.settimeout(6 * PATIENCE)
            self._connection.connect(str(path))
            check(self._connection)
            self._connection.sendall(f"{WATCH}\n".encode())
            self._answers = self._connection.makefile("rb")
            if self._answers.readline() != GREETING:
                raise ConnectionError(f"the system at {path} already has eight observers")
        except BaseException:
            self._connection.close()
            raise

    def look(self, **question: Any) -> dict[str, Any]:
        """Ask for the figures since the last look: see SystemView. Raises CallboardError."""
        self._connection.sendall(json.dumps(question).encode() + b"\n")
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the system has ended")
        try:
            answer: Any = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ConnectionError("the system has failed to answer")
        if "error" in answer:
            raise CallboardError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Leave the system."""
        self._answers.close()
        self._connection.close()
