"""At the limit of unreleased published rows no more commits are taken, and nothing is lost."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest

from callboard.remote import Connection, PersistentActor
from callboard.remote.errors import UploadRefused
from callboard.remote.storage.journal import Journal
from callboard.remote.storage.store import StagingLimits
from tests.remote.conftest import DEADLINE, eventually
from tests.remote.staging.served import Served, applied, asked, commit, health

pa = pytest.importorskip("pyarrow")

SMALL = StagingLimits(published_bytes=1)


class Repeat(PersistentActor):
    """Publishes each row, when the gate is open."""

    published: ClassVar[Any] = pa.schema([("row", pa.int64())])
    gate: ClassVar[Event] = Event()

    def __init__(self) -> None:
        self.count = 0

    def apply(self, row: Any) -> None:
        assert self.gate.wait(DEADLINE)
        self.publish((row,))
        self.count += 1

    def answer(self, query: Any) -> Any:
        return self.count

    def snapshot(self) -> Any:
        return self.count

    def restore(self, state: Any) -> None:
        self.count = state


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    Repeat.gate.set()
    served = Served(tmp_path, Repeat)
    yield served
    served.end()


def read(connection: Connection) -> list[int]:
    """Return all rows that are published, and release them."""
    rows = connection.published("it")
    start, end = rows.earliest(), rows.latest()
    found = [row for batch in rows.read(start, end) for row in batch.column("row").to_pylist()]
    rows.release(end)
    return found


def has_left(connection: Connection, batches: int) -> bool:
    return bool(health(connection)["unapplied"] == batches)


def test_a_refused_commit_succeeds_when_rows_were_released(served: Served) -> None:
    connection = served.start(staging=SMALL)
    commit(connection, 1, [1, 2])
    applied(connection)
    kept = health(connection)["unreleased_bytes"]
    assert kept > 0
    with connection.upload("it", job="job", batch=2) as upload:
        upload.send_many([3])
    assert upload.staged is not None
    for _ in range(2):
        with pytest.raises(
            UploadRefused,
            match=rf"batch 2 of the job 'job' is not committed: {kept} bytes of published rows "
            rf"wait for readers, {kept} of them of the entry 'it', and the limit is 1\. Commit it "
            r"again after a release, as by connection\.published\('it'\)\.release\(\), or raise "
            "the server's --max-published-bytes",
        ):
            connection.commit("job", 2, [upload.staged])
    assert health(connection)["committed"] == 1
    assert read(connection) == [1, 2]
    assert health(connection)["unreleased_bytes"] == 0
    connection.commit("job", 2, [upload.staged])
    connection.commit("job", 2, [upload.staged])
    applied(connection)
    assert read(connection) == [3]
    assert asked(connection) == 3


def test_a_commit_that_is_repeated_is_known_at_the_limit(served: Served) -> None:
    connection = served.start(staging=SMALL)
    with connection.upload("it", job="job", batch=1) as upload:
        upload.send_many([1])
    assert upload.staged is not None
    connection.commit("job", 1, [upload.staged])
    applied(connection)
    connection.commit("job", 1, [upload.staged])
    assert read(connection) == [1]


def test_other_entries_go_on_at_the_limit(served: Served) -> None:
    connection = served.start(staging=SMALL)
    commit(connection, 1, [1])
    applied(connection)
    commit(connection, 2, ["a"], entry="notes")
    applied(connection)
    assert read(connection) == [1]


def test_committed_rows_survive_a_restart_and_come_once(served: Served) -> None:
    Repeat.gate.clear()
    connection = served.start(staging=SMALL)
    for batch in (1, 2, 3):
        commit(connection, batch, [batch])
    Repeat.gate.set()
    eventually(lambda: health(connection)["unapplied"] == 2, "the first is applied")
    assert served.running is not None
    backlog = served.running[1]._staging._backlog  # type: ignore[union-attr]
    eventually(lambda: backlog.is_holding, "the second waits")
    for _ in range(2):
        for batch, entry in ((4, "it"), (5, "notes")):  # behind what waits there is room for none
            with pytest.raises(UploadRefused, match=f"batch {batch} of .* is not committed"):
                commit(connection, batch, [batch], entry)
        assert connection.published("it").latest() == 1
        assert health(connection)["state"] == "serving"
        connection = served.start(staging=SMALL)
        assert health(connection)["unapplied"] == 2
    found = []
    for left in (1, 0):
        found += read(connection)
        eventually(partial(has_left, connection, left), "one more is applied")
    assert [*found, *read(connection)] == [1, 2, 3]
    commit(connection, 4, [4])
    applied(connection)
    assert read(connection) == [4]
    assert asked(connection) == 4


def test_a_server_that_drains_does_not_wait_for_readers(served: Served) -> None:
    Repeat.gate.clear()
    connection = served.start(staging=SMALL)
    for batch in (1, 2):
        commit(connection, batch, [batch])
    Repeat.gate.set()
    eventually(lambda: health(connection)["unapplied"] == 1, "the first is applied")
    assert served.running is not None
    _, server, _ = served.running
    connection.close()
    server.drain(DEADLINE)
    connection = served.start()
    assert read(connection) == [1, 2]


def test_0_bytes_are_no_limit_and_what_waits_is_counted_over_a_restart(served: Served) -> None:
    connection = served.start(staging=StagingLimits(published_bytes=0))
    for batch in range(3):
        commit(connection, batch, [batch])
    applied(connection)
    kept = health(connection)["unreleased_bytes"]
    connection = served.start(staging=StagingLimits(published_bytes=kept))
    assert health(connection)["unreleased_bytes"] == kept
    with pytest.raises(UploadRefused, match=f"{kept} bytes of published rows"):
        commit(connection, 3, [3])
    connection.published("it").release(1)  # one piece of three
    assert health(connection)["unreleased_bytes"] == kept * 2 // 3
    commit(connection, 4, [4])


def test_a_journal_of_the_second_version_is_counted(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [1])
    applied(connection)
    kept = health(connection)["unreleased_bytes"]
    served.end()
    journal = Journal(served.folder / "state" / "journal.db")
    journal._db.execute("ALTER TABLE publications DROP COLUMN bytes")
    journal._db.execute("PRAGMA user_version = 2")
    journal.close()
    assert health(served.start())["unreleased_bytes"] == kept > 0
