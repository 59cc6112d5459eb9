"""A server in this process, on a Unix socket, with a few actors."""

import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, Future, Supervision
from callboard.remote import Connection, Server, connect, serve_entries
from callboard.remote.errors import ConnectionLost
from callboard.remote.protocol.kinds import MAGIC, VERSION, Goodbye, MessageKind, read_goodbye
from callboard.remote.wire.codec import VERSION as ENCODING
from callboard.remote.wire.frames import Frame, Splitter
from tests.tokenless import tokenless
from tests.waiting import until

DEADLINE = 60.0  # seconds: far more than anything takes


class Notes(Actor[Any]):
    """Keeps what it is told; asked for "all", it answers with that."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def receive(self, message: Any) -> Any:
        if message == "all":
            return self.notes
        if message == "boom":
            raise ValueError("no booms")
        self.notes.append(message)
        return message


class Gate(Actor[Any]):
    """Waits at each message until the test lets it."""

    opened: Event
    seen: list[Any]

    def receive(self, message: Any) -> Any:
        Gate.seen.append(message)
        assert Gate.opened.wait(DEADLINE)
        return message


class Owing(Actor[Any]):
    """Answers with a future that it completes at "now"."""

    def __init__(self) -> None:
        self.owed: list[Future[Any]] = []

    def receive(self, message: Any) -> Any:
        if message == "now":
            for future in self.owed:
                future.set_result("late")
            return None
        self.owed.append(Future())
        return self.owed[-1]


def build(system: ActorSystem) -> dict[str, Any]:
    Gate.opened, Gate.seen = Event(), []
    resume = Supervision("resume")
    return {
        "notes": system.spawn(Notes, supervision=resume),
        "others": system.spawn(Notes, supervision=resume),
        "gate": system.spawn(Gate),
        "narrow": system.spawn(Gate, mailbox=BoundedMailbox(2, timeout=0.001), dedicated=True),
        "refusing": system.spawn(Gate, mailbox=BoundedMailbox(1, "fail")),
        "owing": system.spawn(Owing),
    }


Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers; they are stopped at the end."""
    servers = []
    # Two workers, so that one which waits at a gate is not the only one.
    with tokenless(workers=2) as system:

        def starting(bind: str = f"unix:{tmp_path}/s", **options: Any) -> Server:
            server = Server(system, serve_entries(build(system)), bind, **options)
            servers.append(server)
            return server

        yield starting
        Gate.opened.set()
        for server in servers:
            server.stop()


@pytest.fixture
def server(start: Start) -> Server:
    return start()


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    connection = connect(str(server.address), timeout=DEADLINE)
    yield connection
    Gate.opened.set()
    connection.close()


def ask_twice(connection: Connection) -> None:
    """Raise what refused earlier messages: it comes before the first answer."""
    for _ in range(2):
        connection.ref("notes").ask(0).result(DEADLINE)


def eventually(condition: Callable[[], Any], what: str) -> None:
    """Look until it is so."""
    until(condition, what, DEADLINE)


def loss(call: Callable[[], object]) -> str:
    """Return what the ConnectionLost says that the call raises."""
    with pytest.raises(ConnectionLost) as raised:
        call()
    return str(raised.value)


def logged(caplog: pytest.LogCaptureFixture, *parts: str) -> Callable[[], bool]:
    """Tell whether one line of the log has all these parts."""
    return lambda: any(
        all(part in record.getMessage() for part in parts) for record in caplog.records
    )


@pytest.fixture(autouse=True)
def _log_all(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="callboard")


def hello(secret: bytes = b"", version: int = VERSION, encoding: int = ENCODING) -> bytes:
    return MessageKind.HELLO.frame(MAGIC, version, encoding, rest=secret)


class RawClient:
    """A socket that says what a test wants, well-formed or not."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(path)
        self._splitter = Splitter(1 << 30)
        self._frames: list[Frame] = []

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> Frame | None:
        """Return the next frame, None at the end."""
        while not self._frames:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self._frames += self._splitter.feed(data)
        return self._frames.pop(0)

    def goodbye(self) -> Goodbye:
        """Return the server's goodbye, behind which it hangs up."""
        received = self.receive()
        while received is not None and received.kind != MessageKind.GOODBYE:
            received = self.receive()
        assert received is not None, "no goodbye"
        assert self.receive() is None
        return read_goodbye(received.body)


@pytest.fixture
def raw(server: Server) -> Iterator[Callable[[], RawClient]]:
    """Make raw clients."""
    clients = []

    def making() -> RawClient:
        clients.append(RawClient(server.address.path))  # type: ignore[union-attr]
        return clients[-1]

    yield making
    for client in clients:
        client.socket.close()
