"""Damage to the journal is reported at the start, or all committed rows are there."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callboard.remote.errors import StateError
from callboard.remote.protocol.requests import (
    BatchName,
    Begin,
    Layout,
    StagedAttempt,
    UploadEnd,
    UploadRows,
)
from callboard.remote.storage.journal import Journal, Publication
from callboard.remote.storage.outbox import Piece
from callboard.remote.storage.parts import StagedPart
from callboard.remote.wire.codec import Codec
from tests.remote.conftest import Start

BATCHES = 24
APPLIED = 15
Damage = Callable[[bytearray], None]


def part_of(batch: int, partition: int, folder: Path) -> StagedPart:
    part = StagedPart(
        Begin(0, 0, BatchName("job", batch), partition, batch), "it", folder / "part", 0.0
    )
    for frame in range(3):
        rows = [f"{batch}/{partition}/{frame}/{row} {'x' * (batch * 37)}" for row in range(20)]
        payload = memoryview(Codec().encode_rows(rows))
        part.add(UploadRows(0, frame, Layout.ROWS, len(rows), payload), to_file=False)
    part.end(UploadEnd(0, part.rows, part._checksum))
    return part


def fill(journal: Journal, folder: Path) -> None:
    for batch in range(1, BATCHES + 1):
        parts = [part_of(batch, partition, folder) for partition in range(2)]
        assert journal.append(parts[0].name, [part.winner for part in parts], parts) == batch
        if batch <= APPLIED:
            pieces = [Piece(2, b"published by %d " % batch * 50)]
            journal.mark(
                batch, {"it": b"state of %d " % batch * 99}, {"it": Publication(b"schema", pieces)}
            )
    journal.release("it", 4)


def contents(journal: Journal) -> Any:
    """Return all that may be asked of a journal."""
    winners = [StagedAttempt(0, 1, 60), StagedAttempt(1, 1, 60)]
    return (
        journal.last,
        [
            journal.has_winners(
                BatchName("job", batch), [each._replace(attempt=batch) for each in winners]
            )
            for batch in range(1, BATCHES + 1)
        ],
        journal.first_with_rows(),
        [
            (number, entry, list(journal.frames(number, entry)))
            for number in range(1, BATCHES + 1)
            for entry in journal.entries(number)
        ],
        journal.positions(),
        journal.published("it"),
        [journal.piece("it", row) for row in range(4, APPLIED * 2)],
        journal.unreleased_bytes,
    )


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory as a killed server leaves it: nearly all is in the log."""
    folder = tmp_path_factory.mktemp("killed")
    journal = Journal(folder / "journal.db")
    fill(journal, folder)
    left = tmp_path_factory.mktemp("left")
    for file in folder.iterdir():
        shutil.copy(file, left)
    journal.close()
    (left / "journal.db-shm").unlink()  # it is of the process that had it
    return left


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of a server that has ended: all is in the database."""
    folder = tmp_path_factory.mktemp("ended")
    journal = Journal(folder / "journal.db")
    fill(journal, folder)
    journal.close()
    return folder


def flip(share: float) -> Damage:
    def act(data: bytearray) -> None:
        data[int(share * len(data))] ^= 1 << int(share * 8000) % 8

    return act


def cut(share: float) -> Damage:
    def act(data: bytearray) -> None:
        del data[int(share * len(data)) :]

    return act


def blank(share: float) -> Damage:
    def act(data: bytearray) -> None:
        start = int(share * len(data)) // 512 * 512
        data[start : start + 512] = bytes(len(data[start : start + 512]))

    return act


def survives(source: Path, name: str, damage: Damage, folder: Path, expected: Any) -> bool:
    """Tell whether all is there after a damage; False if it is an error. Else fail."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    data = bytearray((folder / name).read_bytes())
    damage(data)
    (folder / name).write_bytes(data)
    try:
        journal = Journal(folder / "journal.db")
    except StateError:
        assert (folder / name).read_bytes() == data, "what is damaged is left as it is"
        return False
    try:
        assert contents(journal) == expected
    except StateError:  # of published rows, at the read
        return False
    finally:
        journal.close()
    return True


def expected_of(source: Path, folder: Path) -> Any:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    journal = Journal(folder / "journal.db")
    found = contents(journal)
    journal.close()
    assert found[0] == BATCHES
    assert all(found[1])
    assert len(found[3]) == BATCHES - APPLIED
    return found


@pytest.mark.parametrize("kind", [flip, cut, blank])
@pytest.mark.parametrize(
    ("state", "name"),
    [("killed", "journal.db-wal"), ("killed", "journal.db"), ("ended", "journal.db")],
)
def test_damage_is_an_error_or_all_committed_rows_are_there(
    kind: Any, state: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = request.getfixturevalue(state)
    expected = expected_of(source, tmp_path / "state")
    places = random.Random(f"{kind.__name__} {name}")
    shares = [0.0, 0.0001, *(places.random() for _ in range(30)), 0.999]
    whole = [survives(source, name, kind(at), tmp_path / "state", expected) for at in shares]
    if (state, name) != ("killed", "journal.db"):  # whose pages are in the log as well
        assert not all(whole), "none of them was seen"


@pytest.mark.parametrize("name", ["journal.db", "journal.db-wal"])
def test_a_file_that_is_gone_is_an_error(killed: Path, name: str, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "state")
    (tmp_path / "state" / name).unlink()
    with pytest.raises(StateError, match=r"journal\.db is damaged"):
        Journal(tmp_path / "state" / "journal.db")


@pytest.mark.parametrize("kind", [flip, cut])
def test_a_damaged_mark_is_an_error(kind: Any, killed: Path, tmp_path: Path) -> None:
    expected = expected_of(killed, tmp_path / "state")
    mark = tmp_path / "state" / "journal.mark"
    before = mark.read_bytes()
    for share in (0.0, 0.3, 0.99):
        data = bytearray(before)
        kind(share)(data)
        mark.write_bytes(data)
        with pytest.raises(StateError, match=r"journal\.mark is damaged"):
            Journal(tmp_path / "state" / "journal.db")
    mark.unlink()
    journal = Journal(tmp_path / "state" / "journal.db")
    assert contents(journal) == expected
    journal.close()
    assert mark.read_bytes() == before


def test_a_log_with_a_lost_end_starts_no_server(killed: Path, tmp_path: Path, start: Start) -> None:
    state = tmp_path / "state"
    shutil.copytree(killed, state)
    log = state / "journal.db-wal"
    data = log.read_bytes()
    log.write_bytes(data[: len(data) // 2])
    with pytest.raises(StateError, match=r"the end of its log is lost .*remove journal\.mark"):
        start(state=state)
    (state / "journal.mark").unlink()  # continue without it
    journal = Journal(state / "journal.db")
    assert 0 < journal.last < BATCHES
    journal.close()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE batches SET job = 'jib' WHERE number = 20", "batch 20"),
        ("DELETE FROM batches WHERE number = 3", "batch 3"),
        ("DELETE FROM frames WHERE batch = 20", "rows of batch 20 are missing"),
        ("UPDATE frames SET partition = 7 WHERE batch = 20 AND row = 20", "another checksum"),
        ("UPDATE frames SET row = row + 1 WHERE batch = 20 AND row = 20", "another checksum"),
        ("UPDATE positions SET batch = 99", "the state of 'it' has another checksum"),
        (
            "UPDATE positions SET batch = 99,"
            " checksum = row_checksum(entry, 99, published, snapshot)",
            "99",
        ),
        ("UPDATE positions SET snapshot = x'00'", "the state of 'it' has another checksum"),
        ("DELETE FROM positions", "missing"),
        ("DELETE FROM publications", "the published rows of 'it'"),
        ("UPDATE publications SET first = 0", "the publication of 'it'"),
        ("DELETE FROM pieces WHERE first = 8", "published rows of 'it' are missing"),
        ("DROP TABLE positions", "'positions'"),
    ],
)
def test_wrong_tables_are_named(ended: Path, tmp_path: Path, sql: str, said: str) -> None:
    shutil.copytree(ended, tmp_path / "state")
    path = tmp_path / "state" / "journal.db"
    journal = Journal(path)
    journal._db.execute(sql)
    journal.close()
    with pytest.raises(StateError, match=said):
        Journal(path)
