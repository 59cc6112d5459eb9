"""The state directory: access rights, and data synchronised with the disk."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard.remote import Server, connect
from callboard.remote.errors import StateError
from callboard.remote.protocol.requests import BatchName
from callboard.remote.storage.journal import Journal, Publication
from callboard.remote.storage.outbox import Piece
from callboard.remote.storage.state_directory import StateDirectory
from callboard.remote.storage.store import StagingLimits
from tests.remote.conftest import DEADLINE, Start


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def server(start: Start, state: Path) -> Server:
    return start(state=state)


def test_a_state_directory_has_one_server(server: Server, start: Start, state: Path) -> None:
    with pytest.raises(StateError, match="another server uses the state directory"):
        start(f"{server.address}2", state=state)
    server.stop()
    start(f"{server.address}2", state=state)


def test_a_state_directory_that_cannot_be_made_is_named(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "no" / "where"):
        with pytest.raises(StateError, match=str(path)):
            start(state=path)


def test_a_later_version_and_a_broken_file_are_refused(start: Start, state: Path) -> None:
    state.mkdir()
    with sqlite3.connect(state / "journal.db") as database:
        database.execute("PRAGMA user_version = 5")
    database.close()
    with pytest.raises(StateError, match="has version 5, of a later callboard; this one knows 4"):
        start(state=state)
    with sqlite3.connect(state / "journal.db") as database:
        database.execute("PRAGMA user_version = 4")
    database.close()
    with pytest.raises(StateError, match=r"tables or columns of .*'publications'.* are missing"):
        start(state=state)
    (state / "journal.db").write_bytes(b"not a database, whatever else" * 100)
    with pytest.raises(StateError, match="file is not a database"):
        start(state=state)


def test_state_that_clients_may_know_of_is_synced(tmp_path: Path) -> None:
    normal, full = (1,), (2,)  # what SQLite calls them

    def synchronous() -> Any:
        return journal._db.execute("PRAGMA synchronous").fetchone()

    journal = Journal(tmp_path / "journal.db")
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert synchronous() == full
    acts: list[tuple[Callable[[], object], Any]] = [
        (lambda: journal.mark(0, {"it": b"state"}), normal),
        (lambda: journal.append(BatchName("job", 1), [], []), full),
        (lambda: journal.mark(1, {"it": b"state", "that": None}), full),
        (lambda: journal.mark(1, {"it": b"state"}), normal),
        (lambda: journal.mark(1, {"it": b""}, {"it": Publication(b"", [Piece(1, b"")])}), full),
        (lambda: journal.mark(1, {"it": b"state"}), normal),
        (lambda: journal.release("it", 1), full),
    ]
    for act, expected in acts:
        act()
        assert synchronous() == expected
    journal.close()


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o770, 0o777])
def test_files_of_an_old_directory_are_private(start: Start, state: Path, mode: int) -> None:
    state.mkdir(mode)
    server = start(state=state, shard="0/2")
    found = modes(state)
    assert {"journal.db", "journal.db-wal", "journal.mark", "lock", "shard"} <= found.keys()
    assert {name: mode for name, mode in found.items() if mode & 0o077} == {}
    assert not stat.S_IMODE(state.stat().st_mode) & 0o022
    server.stop()


@pytest.mark.usefixtures("no_umask")
def test_a_directory_that_was_open_to_others_is_closed_to_them(
    start: Start, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start(state=state).stop()
    state.chmod(0o777)
    for path in state.iterdir():
        path.chmod(0o777)
    server = start(state=state)
    assert {name: mode for name, mode in modes(state).items() if mode & 0o077} == {}
    assert stat.S_IMODE(state.stat().st_mode) == 0o755
    assert "state directory closed to other users" in caplog.text
    server.stop()


def test_a_directory_of_another_user_is_refused(
    start: Start, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(state=state).stop()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(
        StateError, match=f"{state} belongs to the user {mine}, .* as the user 4711"
    ):
        StateDirectory(state)


def test_a_directory_that_users_share_is_refused(start: Start, state: Path) -> None:
    state.mkdir()
    state.chmod(0o1777)
    with pytest.raises(StateError, match="a directory that many users share"):
        start(state=state)
    assert list(state.iterdir()) == []


def test_a_relative_directory_is_that_of_the_start(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    server = start(state="state", staging=StagingLimits(staged_memory=0))
    monkeypatch.chdir(tmp_path / "elsewhere")
    with connect(str(server.address), timeout=DEADLINE) as connection:
        with connection.upload("notes", job="job") as upload:
            upload.send_many([1, 2])
        connection.commit("job", 0, [upload.staged])  # type: ignore[list-item]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_forked_child_that_closes_its_copy_leaves_the_log_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append(BatchName("job", 1), [], [])
    child = os.fork()
    if child == 0:
        try:
            journal.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    journal.append(BatchName("job", 2), [], [])
    copy = shutil.copytree(tmp_path, tmp_path / "copy")  # as a killed server leaves it
    (copy / "journal.db-shm").unlink()
    again = Journal(copy / "journal.db")
    assert again.last == 2
    again.close()
    journal.close()
