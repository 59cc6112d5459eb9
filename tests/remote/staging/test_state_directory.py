"""The directory of what is on disk: who may use it, and what is synchronised with the disk."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.remote import StateError
from callboard.remote.server import Server
from callboard.remote.staging.journal import Journal, Publication
from callboard.remote.staging.messages import BatchName
from callboard.remote.staging.outbox import Piece
from tests.remote.conftest import Start


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
        database.execute("PRAGMA user_version = 4")
    database.close()
    with pytest.raises(
        StateError, match="is of version 4, from a later callboard; this one knows 3"
    ):
        start(state=state)
    with sqlite3.connect(state / "journal.db") as database:
        database.execute("PRAGMA user_version = 3")
    database.close()
    with pytest.raises(StateError, match="cannot be used: no such table: publications"):
        start(state=state)
    (state / "journal.db").write_bytes(b"not a database, whatever else" * 100)
    with pytest.raises(StateError, match="file is not a database"):
        start(state=state)


def test_what_somebody_outside_may_know_of_passes_an_fsync(tmp_path: Path) -> None:
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
