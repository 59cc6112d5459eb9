"""The socket where a system answers `callboard dump`, `top` and other commands of the same user.

It is in a folder that only this user can enter. The kernel says which user asks, and other users
get no answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import struct
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.log import log
from callboard.observing.conversation import WATCH, Connections, Conversations, shut_down

LONGEST_QUESTION = 64
"""In bytes."""
PATIENCE = 5.0
"""The time for a question, or for the reading of an answer, in seconds."""
BRIEF_PATIENCE = 2.0
"""The time in which a system has to identify itself, in seconds. A stopped process never does."""

MOST_QUESTIONS = 32
"""The number of questions at one time. One more ends the oldest."""
LONGEST_ANSWER = 2**30
"""In bytes."""

_PEER = struct.Struct("3i")  # pid, uid, gid


def folder_of_sockets() -> Path:
    """Return the folder of this user's sockets, and make it.

    Raises CallboardError if other users can enter it, or have made it.
    """
    above = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(above) / f"callboard-{os.geteuid()}"
    if len(os.fsencode(folder)) > 60:  # a socket's path has 107 bytes
        folder = Path("/tmp") / folder.name
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise CallboardError(f"{folder} must be a folder for the sockets of observers, got a file")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise CallboardError(
            f"{folder} must be a folder of user {os.geteuid()} that others cannot enter, for the "
            f"sockets of observers, got owner {found.st_uid} and mode "
            f"{stat.S_IMODE(found.st_mode):o}"
        )
    return folder


def uid_of_peer(connection: socket.socket) -> int:
    """Return the user at the other end of a connection, according to the kernel."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    uid: int = _PEER.unpack(peer)[1]
    return uid


class Endpoint:
    """Answers questions at a socket, in a separate thread, until it is closed."""

    def __init__(
        self,
        name: str,
        answer: Callable[[str], Any],
        watch: Callable[[], Callable[[str], Any]],
    ) -> None:
        self._pid = os.getpid()
        self._conversations = Conversations(f"{name}-watched", watch)
        self._questions = Questions(f"{name}-asked", answer, self._conversations)
        folder = folder_of_sockets()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path = self._bind(folder)
            self._listener.listen()
        except BaseException:
            self._listener.close()
            raise
        _endpoints.add(self)
        self._thread = threading.Thread(
            target=_serve,
            args=(self._listener, self._questions),
            name=f"{name}-observed",
            daemon=True,
        )
        self._thread.start()

    def _bind(self, folder: Path) -> Path:
        for number in range(1000):
            path = folder / f"{os.getpid()}-{number}.sock"
            if not path.exists():
                self._listener.bind(str(path))
                return path
        raise CallboardError(f"this process has a thousand sockets in {folder}")

    def close(self) -> None:
        """Stop answering, and remove the socket."""
        if os.getpid() == self._pid:
            self.path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # closed already
                self._listener.shutdown(socket.SHUT_RDWR)  # so its thread ends
            self._questions.end()
            self._conversations.end()

    def close_in_child(self) -> None:
        """Close the copies of the sockets, in a forked child."""
        self._listener.close()
        self._questions.close_in_child()
        self._conversations.close_in_child()


_endpoints: weakref.WeakSet[Endpoint] = weakref.WeakSet()


def _close_all_in_child() -> None:
    for endpoint in list(_endpoints):
        endpoint.close_in_child()


os.register_at_fork(after_in_child=_close_all_in_child)


class Questions(Connections):
    """The observers that ask one question, each in a thread, without waiting for each other."""

    def __init__(
        self, name: str, answer: Callable[[str], Any], conversations: Conversations
    ) -> None:
        super().__init__(name)
        self._answer = answer
        self._conversations = conversations

    def begin(self, connection: socket.socket) -> None:
        """Have a question answered by a thread, which closes the connection."""
        with self._lock:
            if len(self._connections) >= MOST_QUESTIONS:
                oldest = next(iter(self._connections))
                del self._connections[oldest]
                shut_down(oldest)
            self._connections[connection] = None
        thread = threading.Thread(
            target=self._answer_one, args=(connection,), name=self._name, daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # there can be no more threads
            self._leave(connection)

    def _leave(self, connection: socket.socket) -> None:
        with self._lock:  # so that it is not shut down any more
            self._connections.pop(connection, None)
            connection.close()

    def _answer_one(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(PATIENCE)
            question = _line(connection)
            if question == WATCH:
                self._conversations.begin(connection)
            else:
                connection.sendall(json.dumps(self._answer(question)).encode())
        except OSError:
            pass  # the observer is gone, or does not read
        except Exception as error:
            log.error("an observer's request failed", exc_info=error)
        finally:
            self._leave(connection)


def _serve(listener: socket.socket, questions: Questions) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            listener.close()  # the endpoint is closed
            return
        if uid_of_peer(connection) in (os.geteuid(), 0):
            questions.begin(connection)
        else:
            connection.close()


def _line(connection: socket.socket) -> str:
    data = b""
    while not data.endswith(b"\n") and len(data) < LONGEST_QUESTION:
        more = connection.recv(LONGEST_QUESTION)
        if not more:
            break
        data += more
    return data.decode(errors="replace").strip()


def refuse_another_user(connection: socket.socket) -> None:
    """Raise PermissionError if the socket that this is connected to is another user's."""
    if uid_of_peer(connection) != os.geteuid():
        raise PermissionError(f"{connection.getpeername()} belongs to another user")


def ask(path: Path, question: str, patience: float = 6 * PATIENCE) -> Any:
    """Ask at a socket. Raises OSError: ConnectionError if no whole answer comes.

    TimeoutError or BlockingIOError is raised if nothing comes for `patience` seconds.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience)
        connection.connect(str(path))
        refuse_another_user(connection)
        connection.sendall(f"{question}\n".encode())
        answer = bytearray()
        while part := connection.recv(65536):
            answer += part
            if len(answer) > LONGEST_ANSWER:
                raise ConnectionError(f"the process at {path} answers with more than a gigabyte")
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        raise ConnectionError(f"the process at {path} has ended, or failed to answer") from None
