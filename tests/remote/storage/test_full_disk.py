"""A server survives a full disk: commits are refused, and work resumes when there is room."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from callboard.remote import PersistentActor
from callboard.remote.errors import UploadRefused
from callboard.remote.protocol.requests import StagedAttempt
from tests.remote.conftest import DEADLINE, eventually
from tests.remote.staging.served import Served, applied, asked, commit, health


class Total(PersistentActor):
    """The sum of its rows, and many bytes of state."""

    def __init__(self) -> None:
        self.total = 0

    def apply(self, row: int) -> None:
        self.total += row

    def answer(self, query: Any) -> int:
        return self.total

    def snapshot(self) -> list[Any]:
        return [self.total, b"x" * 2**20]

    def restore(self, state: list[Any]) -> None:
        self.total = state[0]


@pytest.fixture
def served(tmp_path: Path) -> Any:
    served = Served(tmp_path, Total)
    yield served
    served.end()


def room(served: Served, pages: int) -> None:
    """Let the database have so many pages more than now."""
    assert served.running is not None
    journal: Any = served.running[1]._staging._journal  # type: ignore[union-attr]
    with journal._lock:
        (now,) = journal._db.execute("PRAGMA page_count").fetchone()
        journal._db.execute(f"PRAGMA max_page_count = {now + pages}")


def test_a_commit_on_a_full_disk_is_refused_and_succeeds_when_there_is_room(served: Served) -> None:
    connection = served.start()
    with connection.upload("it", job="job") as upload:
        upload.send_many([b"x" * 100_000] * 3)
    with connection.upload("it", job="other") as other:
        other.send_many([5])
    room(served, 0)
    winner: StagedAttempt = upload.staged  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(UploadRefused, match=r"full.*it stays staged: commit it again later"):
            connection.commit("job", 0, [winner])
    assert health(connection)["committed"] == 0
    room(served, 1000)
    connection.commit("other", 0, [other.staged])  # type: ignore[list-item]
    connection.commit("job", 0, [winner])
    assert health(connection)["committed"] == 2


def test_an_unwritten_batch_is_written_when_there_is_room(served: Served) -> None:
    connection = served.start()
    room(served, 8)
    commit(connection, 1, [1, 2])
    eventually(lambda: health(connection)["state"] == "failing", "the state does not fit")
    assert "cannot be written yet: database or disk is full" in health(connection)["trouble"]
    commit(connection, 2, [4])
    room(served, 1000)
    applied(connection)
    eventually(lambda: health(connection)["state"] == "serving", "it serves again")
    assert health(connection)["trouble"] == ""
    assert asked(connection) == 7
    assert asked(served.start()) == 7


def test_a_start_on_a_full_disk_comes_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = served.start()
    room(served, 8)
    commit(connection, 1, [1, 2])
    eventually(lambda: health(connection)["state"] == "failing", "the state does not fit")
    full = threading.Event()
    connect = sqlite3.connect

    def connecting(*arguments: Any, **options: Any) -> Any:
        database = connect(*arguments, **options)
        if not options.get("uri") and not full.is_set():
            (now,) = database.execute("PRAGMA page_count").fetchone()
            database.execute(f"PRAGMA max_page_count = {now}")
        return database

    monkeypatch.setattr(sqlite3, "connect", connecting)
    connection = served.start()
    assert health(connection)["state"] == "failing"
    full.set()
    room(served, 1000)
    applied(connection)
    assert asked(connection) == 3


def test_a_server_ends_at_once_though_the_disk_is_full(served: Served) -> None:
    connection = served.start()
    room(served, 8)
    commit(connection, 1, [1, 2])
    eventually(lambda: health(connection)["state"] == "failing", "the state does not fit")
    assert served.running is not None
    served.running[1].drain(DEADLINE)
    assert asked(served.start()) == 3
