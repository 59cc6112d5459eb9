"""A client checks which user serves a Unix socket before it sends anything."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard.core.errors import ConfigError
from callboard.remote import connect
from callboard.remote.errors import ConnectionLost, ConnectionRejected
from callboard.remote.sockets import dialing, security
from tests.remote.conftest import DEADLINE, Start, eventually, loss

SECRET = "0123456789abcdef" * 2
NOBODY = 65534


class Listening:
    """Somebody who listens on a socket, and keeps what clients say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[bytes] = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            connected, _ = self.socket.accept()
            with connected:
                said = connected.recv(1000)
                if said == b"end":
                    return
                self.heard.append(said)

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self.path))
            last.sendall(b"end")
        self._thread.join(DEADLINE)
        self.socket.close()


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    each = Listening(tmp_path / "s")
    yield each
    each.close()


def an_untrusted_peer(connected: socket.socket, user: int | None = None) -> str | None:
    return None if user == NOBODY else f"user {NOBODY}, process 99"


def test_strangers_get_no_secret(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "untrusted_peer", an_untrusted_peer)
    with pytest.raises(
        ConnectionRejected, match=r"got user 65534, process 99: nothing was sent.*server_user="
    ):
        connect(f"unix:{listening.path}", secret=SECRET, timeout=DEADLINE)
    listening.close = lambda: None  # type: ignore[method-assign]
    Listening.close(listening)
    assert listening.heard == [b""]


def test_a_named_user_is_no_stranger(listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "untrusted_peer", an_untrusted_peer)

    def is_said() -> bool:
        url = f"unix:{listening.path}"
        loss(lambda: connect(url, secret=SECRET, timeout=0.2, server_user=NOBODY))
        return any(SECRET.encode() in said for said in listening.heard)  # else it was too early

    eventually(is_said, "the secret is said")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can listen as somebody else")
def test_the_user_that_listens_is_asked_of_the_kernel(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(NOBODY)
        listening.listen()
        os.close(writing)
        os.write(done, b"!")
        os.read(reading, 1)  # until the parent closes its end
        os._exit(0)
    os.close(reading)
    os.read(ready, 1)
    url = f"unix:{tmp_path}/s"
    try:
        with pytest.raises(ConnectionRejected, match=f"user {NOBODY}, "):
            connect(url, secret=SECRET, timeout=DEADLINE)
        with pytest.raises(ConnectionRejected, match="expected a server of the user 1 or root"):
            connect(url, secret=SECRET, timeout=DEADLINE, server_user="1")
        with pytest.raises(ConnectionLost):  # it is trusted, and says nothing
            connect(url, secret=SECRET, timeout=0.2, server_user=NOBODY)
    finally:
        for each in (writing, ready, done):
            os.close(each)
        os.waitpid(child, 0)
        listening.close()


def test_a_server_of_this_user_is_trusted(start: Start) -> None:
    address = str(start().address)
    for user in (None, os.geteuid(), str(os.geteuid())):
        connect(address, timeout=DEADLINE, server_user=user).close()


@pytest.mark.parametrize("user", ["no such user", "", -1, 2**32, 1.5, True, "x\0"])
def test_an_unknown_user_is_named(user: object) -> None:
    with pytest.raises(ConfigError, match="user"):
        connect("unix:/nowhere", server_user=user)


def test_users_have_names() -> None:
    assert security.user_id("root") == security.user_id("0") == security.user_id(0) == 0
