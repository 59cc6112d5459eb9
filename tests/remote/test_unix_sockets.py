"""A Unix socket: its owner, and its removal or replacement."""

import os
import socket
import struct
from pathlib import Path

import pytest

from callboard.core.errors import ConfigError
from callboard.remote import Server, connect
from callboard.remote.sockets import listening, security
from callboard.remote.sockets.address import UnixAddress
from callboard.remote.sockets.listening import Listener
from tests.remote.conftest import DEADLINE, Start, eventually, loss


class Credentials:
    """A socket whose other end belongs to a user."""

    def __init__(self, user: int) -> None:
        self.user = user

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_PEERCRED)
        return struct.pack("3i", 99, self.user, 0)


def test_the_user_at_the_other_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert security.untrusted_peer(ours) is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    said = [security.untrusted_peer(Credentials(user)) for user in (0, 1000, 1001)]  # type: ignore[arg-type]
    assert said == [None, None, "user 1001, process 99"]


def test_a_unix_socket_is_its_users_alone(server: Server) -> None:
    path = server.address.path  # type: ignore[union-attr]
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(path)) == ["s"]


def test_a_socket_is_private(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    rename = os.rename

    def renaming(here: str, there: Path) -> None:
        modes.append(
            (os.stat(os.path.dirname(here)).st_mode & 0o777, os.stat(here).st_mode & 0o777)
        )
        assert not there.exists()
        rename(here, there)

    monkeypatch.setattr(os, "rename", renaming)
    start(f"unix:{tmp_path}/own")
    assert modes == [(0o700, 0o600)]


def test_a_socket_that_a_killed_server_left_is_replaced(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "left"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    connect(str(start(f"unix:{path}").address)).close()


def test_one_server_replaces_a_killed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = UnixAddress(str(tmp_path / "left"))
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(address.path)
    monkeypatch.setattr(listening, "_TURN", 0.0)
    rename = os.rename

    def renaming(here: str, there: Path) -> None:
        monkeypatch.setattr(os, "rename", rename)
        with pytest.raises(ConfigError, match=f"another program has locked {tmp_path}"):
            Listener(address)
        rename(here, there)

    monkeypatch.setattr(os, "rename", renaming)
    first = Listener(address)
    assert os.rename is rename
    with pytest.raises(ConfigError, match="another server listens"):
        Listener(address)
    first.close()
    assert not os.path.exists(address.path)


def test_a_socket_in_use_is_left_alone(server: Server, start: Start) -> None:
    with pytest.raises(ConfigError, match="another server listens on"):
        start(str(server.address))


def test_a_file_that_is_not_a_socket_is_left_alone(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("dear")
    with pytest.raises(ConfigError, match="exists, and is not a socket"):
        start(f"unix:{path}")
    assert path.read_text() == "dear"


def test_a_stopped_server_takes_its_socket_along(start: Start, tmp_path: Path) -> None:
    start(f"unix:{tmp_path}/gone").stop()
    assert not (tmp_path / "gone").exists()


def test_a_relative_socket_goes_with_its_server_from_another_directory(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    server = start("unix:relative")
    assert str(server.address) == "unix:relative"
    connection = connect("unix:relative", timeout=DEADLINE)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert connection.ref("notes").ask(1).result(DEADLINE) == 1
    server.stop()
    assert not (tmp_path / "relative").exists()
    eventually(lambda: connection._own_session.server is None, "the loss is noticed")
    again = start(f"unix:{tmp_path}/relative")
    assert connection.ref("notes").ask(2).result(DEADLINE) == 2
    connection.close()
    again.stop()


def test_a_place_that_is_not_there_is_an_error(start: Start, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot listen on unix:"):
        start(f"unix:{tmp_path}/no/f")


def test_a_server_that_does_not_answer_is_said_to_be_silent(tmp_path: Path) -> None:
    url = f"unix:{tmp_path}/silent"

    def is_said() -> bool:
        said = loss(lambda: connect(url, timeout=0.05))
        return "it took the connection, and did not answer" in said  # else it was too early

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(url.removeprefix("unix:"))
        listening.listen(1000)
        eventually(is_said, "it is reached in time")
