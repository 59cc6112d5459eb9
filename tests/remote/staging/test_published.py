"""Rows that actors publish: each once, the same whenever they are read, until they are released."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from callboard import ActorSystem, ConfigError
from callboard.remote import Connection, PersistentActor, ServerLimits, connect, serve_entries
from callboard.remote.errors import (
    CodecError,
    NotPublished,
    RemoteCallError,
    RemoteError,
    StateError,
    UploadRefused,
)
from callboard.remote.protocol.requests import PublishedPiece
from callboard.remote.storage import publications
from callboard.remote.storage.journal import Journal
from callboard.remote.storage.outbox import Outbox
from tests.remote.conftest import DEADLINE, Start, eventually
from tests.remote.staging.served import Served, applied, asked, commit, health

pa = pytest.importorskip("pyarrow")

SCHEMA = pa.schema([pa.field("row", pa.int64(), nullable=False), ("text", pa.string())])


class Echo(PersistentActor):
    """Publishes as many rows for each row as that says."""

    published: ClassVar[Any] = SCHEMA

    def __init__(self) -> None:
        self.count = 0

    def apply(self, row: Any) -> None:
        for _ in range(row):
            self.publish((self.count, f"text {self.count}"))
            self.count += 1

    def answer(self, query: Any) -> Any:
        return self.publish(query) if query != "total" else self.count

    def snapshot(self) -> Any:
        return self.count

    def restore(self, state: Any) -> None:
        self.count = state


class Faulty(Echo):
    rows: ClassVar[list[Any]] = []

    def apply(self, row: Any) -> None:
        for each in self.rows:
            self.publish(each)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, Echo)
    yield served
    served.end()


def read(connection: Connection, start: int, end: int) -> list[int]:
    """Return the numbers in the rows of a range."""
    found = []
    for batch in connection.published("it").read(start, end):
        assert batch.schema.equals(SCHEMA)
        numbers = batch.column("row").to_pylist()
        assert batch.column("text").to_pylist() == [f"text {number}" for number in numbers]
        found += numbers
    return found


def test_a_range_is_the_same_whenever_it_is_read(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [1] * 10_000)
    commit(connection, 2, [0, 3, 0])
    commit(connection, 3, [])
    applied(connection)
    rows = connection.published("it")
    assert (rows.earliest(), rows.latest()) == (0, 10_003)
    assert rows.schema().equals(SCHEMA)
    for start, end in [(0, 10_003), (0, 0), (7, 8), (4_095, 4_097), (9_999, 10_003)]:
        for _ in range(2):
            assert read(connection, start, end) == [*range(start, end)]
    assert read(served.start(), 0, 10_003) == [*range(10_003)]


def test_rows_not_yet_published_or_released_are_errors(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [10_000])
    applied(connection)
    rows = connection.published("it")
    with pytest.raises(
        NotPublished, match="row 10000 of 'it' is not published yet: only 10000 rows are"
    ):
        read(connection, 9_000, 10_001)
    with pytest.raises(NotPublished, match="row 10001 of 'it' is not published yet"):
        rows.release(10_001)
    for _ in range(2):
        rows.release(5_000)
    rows.release(3)
    assert (rows.earliest(), rows.latest()) == (5_000, 10_000)
    assert health(connection)["unreleased"] == 5_000
    with pytest.raises(NotPublished, match=r"row 4999 of 'it' was released, .* before row 5000"):
        read(connection, 4_999, 6_000)
    assert read(connection, 5_000, 10_000) == [*range(5_000, 10_000)]
    rows.release(10_000)
    assert (rows.earliest(), rows.latest()) == (10_000, 10_000)
    commit(connection, 2, [2])
    applied(connection)
    assert read(connection, 10_000, 10_002) == [10_000, 10_001]


def test_released_rows_leave_the_journal(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [10_000])
    applied(connection)
    connection.published("it").release(9_000)
    served.end()
    journal = Journal(served.folder / "state" / "journal.db")
    assert [*journal._rows("SELECT first, rows FROM pieces")] == [(8_192, 1_808)]
    journal.close()


def test_a_batch_that_fails_publishes_nothing_and_later_everything_once(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [2])
    applied(connection)
    commit(connection, 2, [5_000, "three"])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert connection.published("it").latest() == 2

    class Mended(Echo):
        def apply(self, row: Any) -> None:
            super().apply(3 if row == "three" else row)

    connection = served.start(Mended)
    assert connection.published("it").latest() == 5_005
    assert read(connection, 0, 5_005) == [*range(5_005)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([7], "expected a published row as a tuple or a list, got 7"),
        ([(1,)], r"expected values for the columns \['row', 'text'\], got \(1,\)"),
        ([("one", "a")], "column 'row': "),
        ([(1, 2)], "column 'text': "),
        ([(2**63, "a")], "column 'row': "),
        ([(None, "a")], "column 'row': None is not allowed"),
        ([(1, "x" * 5_000)], "a published row takes .* bytes, but 4032 fit into a frame"),
    ],
)
def test_a_row_of_other_columns_fails_its_batch(served: Served, rows: list[Any], said: str) -> None:
    Faulty.rows = rows
    connection = served.start(Faulty, limits=ServerLimits(frame=4096))
    commit(connection, 1, [1])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert re.search(said, health(connection)["trouble"])
    assert connection.published("it").latest() == 0


def test_pieces_fit_into_frames(served: Served) -> None:
    Faulty.rows = [(number, "x" * 300) for number in range(100)]
    connection = served.start(Faulty, limits=ServerLimits(frame=4096))
    commit(connection, 1, [1])
    applied(connection)
    batches = [*connection.published("it").read(0, 100)]
    assert sum(batch.num_rows for batch in batches) == 100
    assert len(batches) > 100 // 12


def test_only_apply_publishes(served: Served) -> None:
    connection = served.start()
    with pytest.raises(RemoteCallError, match="Echo can publish in apply"):
        asked(connection, (1, "a"))
    assert asked(connection) == 0

    class Silent(Echo):
        published = None

    connection = served.start(Silent)
    commit(connection, 1, [1])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert "Silent publishes no rows: it has no `published`" in health(connection)["trouble"]


def test_an_entry_that_publishes_nothing_says_so(served: Served) -> None:
    connection = served.start()
    with pytest.raises(NotPublished, match="the entry 'notes' publishes no rows"):
        connection.published("notes").latest()
    with pytest.raises(RemoteError, match="the server has no entry point 'nobody'"):
        connection.published("nobody").latest()


def test_a_server_without_a_state_directory_publishes_nothing(start: Start) -> None:
    with (
        connect(str(start().address), timeout=DEADLINE) as connection,
        pytest.raises(UploadRefused, match="no uploads and publishes no rows: start it with"),
    ):
        connection.published("notes").release(0)


def test_ranges_that_make_no_sense_are_refused(served: Served) -> None:
    rows = served.start().published("it")
    with pytest.raises(ValueError, match="start must be a whole number of at least 0, got -1"):
        rows.read(-1, 0)
    with pytest.raises(ValueError, match="end must be a whole number of at least 5, got 4"):
        rows.read(5, 4)
    with pytest.raises(ValueError, match="end must be a whole number"):
        rows.release(-1)


@pytest.mark.parametrize(("first", "rows"), [(0, 2), (4, 3), (1, 3), (0, 3)])
def test_a_server_that_sends_other_rows_is_found_out(
    served: Served, monkeypatch: pytest.MonkeyPatch, first: int, rows: int
) -> None:
    outbox = Outbox(SCHEMA, 10_000)
    outbox.add((1, "a"))
    outbox.add((2, "b"))
    ((_, payload),) = outbox.take()
    connection = served.start()
    monkeypatch.setattr(publications, "read", lambda *_: PublishedPiece(first, rows, payload))
    with pytest.raises(
        CodecError, match=f"with row 3, got batches of .* as {rows} rows from {first} on"
    ):
        read(connection, 3, 5)


def test_other_columns_are_refused_while_rows_wait_for_readers(served: Served) -> None:
    class Narrow(Echo):
        published: ClassVar[Any] = pa.schema([("row", pa.int64())])

        def apply(self, row: Any) -> None:
            self.publish((row,))

    class Silent(Echo):
        published = None

    connection = served.start()
    commit(connection, 1, [3])
    applied(connection)
    with pytest.raises(
        StateError,
        match=r"'it' has unreleased rows with the columns \[row: int64, text: string\], but its "
        r"class publishes \[row: int64\]",
    ):
        served.start(Narrow)
    with pytest.raises(
        StateError, match="'it' has published rows, but its class no longer publishes any"
    ):
        served.start(Silent)
    served.start().published("it").release(3)
    connection = served.start(Narrow)
    commit(connection, 2, [9])
    applied(connection)
    (batch,) = connection.published("it").read(3, 4)
    assert batch.to_pylist() == [{"row": 9}]


def test_a_class_that_cannot_publish_is_refused() -> None:
    class Texts(Echo):
        published: ClassVar[Any] = "row long"

    class Empty(Echo):
        published: ClassVar[Any] = pa.schema([])

    class Seldom(Echo):
        snapshot_every = 2

    with ActorSystem(workers=1) as system:
        for cls, said in [
            (Texts, "Texts.published expects a pyarrow.Schema with columns, got 'row long'"),
            (Empty, "Empty.published expects a pyarrow.Schema with columns"),
            (Seldom, "Seldom publishes rows, .* its snapshot_every must be 1, got 2"),
        ]:
            with pytest.raises(ConfigError, match=said):
                serve_entries({"it": system.spawn(cls)})


def test_a_journal_of_the_first_version_is_brought_up_to_date(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [3])
    applied(connection)
    connection.published("it").release(3)
    served.end()
    journal = Journal(served.folder / "state" / "journal.db")
    for sql in ("DROP TABLE pieces", "DROP TABLE publications", "PRAGMA user_version = 1"):
        journal._db.execute(sql)
    journal.close()
    connection = served.start()
    assert asked(connection) == 3
    assert connection.published("it").latest() == 0
    commit(connection, 2, [1])
    applied(connection)
    assert connection.published("it").latest() == 1


def test_an_outbox_cuts_rows_into_pieces_in_their_order() -> None:
    outbox = Outbox(SCHEMA, 10_000)
    for number in range(10_000):
        outbox.add([number, "x" * (number % 50)])
    pieces = outbox.take()
    assert outbox.take() == []
    assert sum(piece.rows for piece in pieces) == 10_000
    assert max(len(piece.payload) for piece in pieces) <= 10_000
    assert len(pieces) < 200


def test_a_row_that_changes_later_is_published_as_it_was() -> None:
    outbox = Outbox(SCHEMA, 2**20)
    row = [1, "before"]
    outbox.add(row)
    row[1] = "after"
    (piece,) = outbox.take()
    assert pa.ipc.open_stream(piece.payload).read_all().to_pylist() == [
        {"row": 1, "text": "before"}
    ]
