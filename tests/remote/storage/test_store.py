"""The store against a small model, over crashes at any point between two steps.

A crash drops the store, with what is staged, and opens the directory anew. What is applied goes to
a total for each entry, as a Persistent actor's state does: with its position, in one transaction,
which also has what the entry has published: of each row that row, and its negative.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from callboard.remote.errors import (
    BatchCommitted,
    CommitConflict,
    NotPublished,
    NotUploaded,
    RemoteError,
    UploadRefused,
)
from callboard.remote.protocol.requests import (
    BatchName,
    Begin,
    Layout,
    StagedAttempt,
    UploadEnd,
    UploadRows,
    payload_checksum,
)
from callboard.remote.storage import publications
from callboard.remote.storage.journal import Journal, Publication
from callboard.remote.storage.outbox import Piece
from callboard.remote.storage.parts import StagedPart
from callboard.remote.storage.state_directory import StateDirectory
from callboard.remote.storage.store import Backlog, StagingLimits, StagingStore
from callboard.remote.wire.codec import Codec

CODEC = Codec()
ENTRIES = ("first", "second")
AGE = 100.0
MEMORY, FILES = 12, 60  # bytes of staged rows
PUBLISHED = 40  # bytes of published rows
names = st.builds(BatchName, st.sampled_from(["a", "b"]), st.integers(0, 3))


@dataclass
class Staged:
    """What the model knows of an attempt."""

    name: BatchName
    entry: str
    partition: int
    attempt: int
    touched: float
    part: StagedPart
    rows: list[int] = field(default_factory=list)
    frames: int = 0
    checksum: int = 0
    ended: bool = False
    gone: bool = False


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = 0.0
        self.row = 0
        self.attempt = 0
        self.staged: list[Staged] = []
        self.committed: dict[BatchName, list[StagedAttempt]] = {}
        self.expected: dict[str, list[int]] = {entry: [] for entry in ENTRIES}
        self.order: list[tuple[str, list[int]]] = []
        self.applied: dict[str, list[int]] = {entry: [] for entry in ENTRIES}  # volatile
        self.outbox: dict[str, list[int]] = {}  # volatile
        self.published: dict[str, list[int]] = {entry: [] for entry in ENTRIES}
        self.released: dict[str, int] = dict.fromkeys(ENTRIES, 0)
        self.open()

    def open(self) -> None:
        self.directory = StateDirectory(Path(self.folder.name) / "state")
        self.journal = Journal(self.directory.journal)
        self.store = StagingStore(
            self.directory,
            self.journal,
            Backlog(self.journal, ENTRIES, PUBLISHED),
            lambda layout, payload: len(CODEC.decode_rows(payload)),
            StagingLimits(staged_memory=MEMORY, staged_bytes=FILES, staged_age=AGE),
            lambda: self.now,
        )
        positions = self.journal.positions()
        for entry in ENTRIES:
            saved = positions.get(entry)
            self.applied[entry] = [] if saved is None else CODEC.decode(saved.snapshot or b"")
            self.outbox[entry] = []
        self.cursor = (self.journal.first_with_rows() or self.journal.last + 1) - 1

    @rule()
    def crash(self) -> None:
        self.journal.close()
        self.directory.close()
        for staged in self.staged:
            staged.gone = True
        self.staged.clear()
        self.open()

    def known(self, name: BatchName) -> list[Staged]:
        return [staged for staged in self.staged if staged.name == name and not staged.gone]

    @rule(name=names, entry=st.sampled_from(ENTRIES), partition=st.integers(0, 2))
    def begin(self, name: BatchName, entry: str, partition: int) -> None:
        self.attempt += 1
        begun = Begin(0, ENTRIES.index(entry), name, partition, self.attempt)
        if name in self.committed:
            with pytest.raises(BatchCommitted):
                self.store.begin(begun, entry)
            return
        try:
            part = self.store.begin(begun, entry)
        except UploadRefused:
            assert self.store.memory >= MEMORY
            assert self.store.disk >= FILES
            return
        with pytest.raises(UploadRefused, match="is already staged"):
            self.store.begin(begun, entry)
        self.staged.append(Staged(name, entry, partition, self.attempt, self.now, part))

    @precondition(lambda self: self.staged)
    @rule(data=st.data(), count=st.integers(1, 5))
    def add(self, data: st.DataObject, count: int) -> None:
        self.add_rows(data.draw(st.sampled_from(self.staged)), count)

    def add_rows(self, staged: Staged, count: int) -> None:
        rows = [*range(self.row, self.row + count)]
        self.row += count
        payload = CODEC.encode_rows(rows)
        frame = UploadRows(0, staged.frames, Layout.ROWS, count, memoryview(payload))
        if staged.gone or staged.ended:
            with pytest.raises(RemoteError):
                self.store.add(staged.part, frame)
            staged.gone = True
            return
        disk = self.store.disk
        try:
            self.store.add(staged.part, frame)
        except UploadRefused:
            assert disk + len(payload) > FILES
            staged.gone = True
            return
        staged.rows += rows
        staged.frames += 1
        staged.checksum = payload_checksum(payload, staged.checksum)
        staged.touched = self.now

    @precondition(lambda self: self.staged)
    @rule(data=st.data(), wrong=st.sampled_from([(0, 0)] * 8 + [(1, 0), (0, 1)]))
    def end(self, data: st.DataObject, wrong: tuple[int, int]) -> None:
        self.end_it(data.draw(st.sampled_from(self.staged)), wrong)

    def end_it(self, staged: Staged, wrong: tuple[int, int] = (0, 0)) -> None:
        end = UploadEnd(0, len(staged.rows) + wrong[0], staged.checksum ^ wrong[1])
        if staged.gone or staged.ended or wrong != (0, 0):
            with pytest.raises(RemoteError):
                self.store.end(staged.part, end)
            staged.gone = True
            return
        assert self.store.end(staged.part, end) == len(staged.rows)
        staged.ended = True
        staged.touched = self.now

    @rule(name=names, entry=st.sampled_from(ENTRIES), sizes=st.lists(st.integers(1, 4), max_size=3))
    def upload_a_whole_partition(self, name: BatchName, entry: str, sizes: list[int]) -> None:
        before = len(self.staged)
        self.begin(name, entry, len(sizes))
        for staged in self.staged[before:]:
            for size in sizes:
                self.add_rows(staged, size)
            self.end_it(staged)

    @rule(
        name=names,
        entry=st.sampled_from(ENTRIES),
        size=st.integers(1, 4),
        applies=st.booleans(),
        data=st.data(),
    )
    def upload_and_commit(
        self, name: BatchName, entry: str, size: int, applies: bool, data: st.DataObject
    ) -> None:
        self.upload_a_whole_partition(name, entry, [size])
        if any(each.ended for each in self.known(name)):
            self.commit_batch(name, data)
        while applies and self.cursor < self.journal.last:
            self.apply_a_batch("no", True)

    @precondition(lambda self: self.committed)
    @rule(data=st.data())
    def commit_again(self, data: st.DataObject) -> None:
        self.commit_batch(data.draw(st.sampled_from(sorted(self.committed))), data)

    @precondition(lambda self: any(each.ended and not each.gone for each in self.staged))
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        ended = {each.name for each in self.staged if each.ended and not each.gone}
        self.commit_batch(data.draw(st.sampled_from(sorted(ended))), data)

    def commit_batch(self, name: BatchName, data: st.DataObject) -> None:
        ready: dict[int, list[Staged]] = defaultdict(list)
        for staged in self.known(name):
            if staged.ended:
                ready[staged.partition].append(staged)
        chosen = [data.draw(st.sampled_from(attempts)) for _, attempts in sorted(ready.items())]
        winners = [StagedAttempt(each.partition, each.attempt, len(each.rows)) for each in chosen]
        if name in self.committed:
            with pytest.raises(CommitConflict):
                self.store.commit(name, [StagedAttempt(7, 7, 7)])
            assert self.store.commit(name, self.committed[name]) is None
            return
        if chosen and self.kept() >= PUBLISHED:
            with pytest.raises(UploadRefused, match=f"{self.kept()} bytes .* limit is {PUBLISHED}"):
                self.store.commit(name, winners)
            return
        where = data.draw(st.sampled_from(["done", "done", "done", "before", "after"]))
        if where == "before":
            crash_before_commit(self.journal)
            with pytest.raises(Crash):
                self.store.commit(name, winners)
        elif where == "after":
            crash_after_commit(self.journal)
            with pytest.raises(Crash):
                self.store.commit(name, winners)
        else:
            assert self.store.commit(name, winners) is not None
        if where != "before":
            self.committed[name] = winners
            for staged in self.known(name):
                staged.gone = True
            for each in chosen:
                self.expected[each.entry] += each.rows
        if where != "done":
            self.crash()

    def kept(self) -> int:
        """Return the bytes of published rows that are there."""
        return self.journal._number("SELECT sum(length(payload)) FROM pieces") or 0

    @rule(name=names, rows=st.integers(0, 3))
    def commit_what_is_not_staged(self, name: BatchName, rows: int) -> None:
        if name not in self.committed:
            with pytest.raises(NotUploaded):
                self.store.commit(name, [StagedAttempt(0, 10**6, rows)])

    @precondition(lambda self: self.staged)
    @rule(data=st.data())
    def commit_with_a_wrong_count_or_too_early(self, data: st.DataObject) -> None:
        staged = data.draw(st.sampled_from(self.staged))
        if staged.name in self.committed:
            return
        rows = len(staged.rows) + (1 if staged.ended and not staged.gone else 0)
        with pytest.raises(NotUploaded):
            self.store.commit(staged.name, [StagedAttempt(staged.partition, staged.attempt, rows)])

    @rule(name=names)
    def abort(self, name: BatchName) -> None:
        if name in self.committed:
            with pytest.raises(BatchCommitted):
                self.store.abort(name)
            return
        self.store.abort(name)
        for staged in self.known(name):
            staged.gone = True

    @rule(seconds=st.sampled_from([1.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.store.expire()
        for staged in self.staged:
            if staged.touched < self.now - AGE:
                staged.gone = True

    @precondition(lambda self: self.cursor < self.journal.last)
    @rule(crash=st.sampled_from(["no", "no", "before", "after"]), mark=st.booleans())
    def apply_a_batch(self, crash: str, mark: bool) -> None:
        number = self.cursor + 1
        for entry in self.journal.entries(number):
            frames = list(self.journal.frames(number, entry))
            assert frames == list(self.journal.frames(number, entry)), "from memory as from disk"
            for frame in frames:
                rows = CODEC.decode_rows(frame.payload)
                self.applied[entry] += rows
                self.outbox[entry] += twice(rows)
        if not mark:  # a snapshot will cover it later
            self.cursor = number
            return
        if crash == "before":
            crash_before_commit(self.journal)
        elif crash == "after":
            crash_after_commit(self.journal)
        states: dict[str, Any] = {entry: CODEC.encode(rows) for entry, rows in self.applied.items()}
        published = {e: Publication(b"", pieces(rows)) for e, rows in self.outbox.items() if rows}
        if crash != "before":
            self.published = {entry: twice(rows) for entry, rows in self.applied.items()}
        try:
            self.journal.mark(number, states, published)
        except Crash:
            self.crash()
        else:
            self.cursor = number
            self.outbox = {entry: [] for entry in ENTRIES}

    @rule(data=st.data(), entry=st.sampled_from(ENTRIES))
    def read(self, data: st.DataObject, entry: str) -> None:
        expected, released = self.published[entry], self.released[entry]
        start = data.draw(st.integers(released, len(expected)))
        assert self.rows_from(entry, start) == expected[start:]
        for row in {released - 1, len(expected)}:
            with pytest.raises(NotPublished, match=r"was released|is not published yet"):
                publications.read(self.journal, entry, row)

    def rows_from(self, entry: str, at: int) -> list[int]:
        rows = []
        while at < self.journal.published(entry).end:
            first, count, payload = publications.read(self.journal, entry, at)
            values = CODEC.decode_rows(payload)
            assert len(values) == count
            rows += values[at - first :]
            at = first + count
        return rows

    @rule(
        data=st.data(),
        entry=st.sampled_from(ENTRIES),
        crash=st.sampled_from(["no", "no", "before", "after"]),
    )
    def release(self, data: st.DataObject, entry: str, crash: str) -> None:
        most = len(self.published[entry])
        with pytest.raises(NotPublished, match="is not published yet"):
            publications.release(self.journal, entry, most + 1)
        row = data.draw(st.integers(0, most))
        crashing = {"before": crash_before_commit, "after": crash_after_commit}.get(crash)
        if row > self.released[entry]:
            if crashing is not None:
                crashing(self.journal)
            if crash != "before":
                self.released[entry] = row
        try:
            publications.release(self.journal, entry, row)
        except Crash:
            self.crash()

    @invariant()
    def what_is_published_is_there_until_it_is_released(self) -> None:
        for entry in ENTRIES:
            found = self.journal.published(entry)
            assert found[:2] == (self.released[entry], len(self.published[entry]))
        assert self.journal.unreleased == sum(
            len(self.published[entry]) - self.released[entry] for entry in ENTRIES
        )
        assert sum(self.journal.unreleased_bytes.values()) == self.kept()

    @invariant()
    def what_is_applied_is_the_beginning_of_what_was_committed(self) -> None:
        for entry in ENTRIES:
            rows = self.applied[entry]
            assert rows == self.expected[entry][: len(rows)]

    @invariant()
    def the_store_knows_what_it_holds(self) -> None:
        parts = [*self.store.parts()]
        assert {id(part) for part in parts} == {
            id(staged.part) for staged in self.staged if not staged.gone
        }
        assert self.store.attempts == len(parts)
        assert self.store.memory == sum(part.memory for part in parts) <= MEMORY
        assert self.store.disk == sum(part.disk for part in parts) <= FILES
        files = list(self.directory.staged.iterdir())
        assert sum(file.stat().st_size for file in files) == self.store.disk

    def teardown(self) -> None:
        self.crash()
        while self.cursor < self.journal.last:
            self.apply_a_batch("no", True)
        assert self.applied == self.expected
        for entry in ENTRIES:
            expected = twice(self.expected[entry])
            assert self.rows_from(entry, self.released[entry]) == expected[self.released[entry] :]
        assert self.journal.first_with_rows() is None
        self.journal.close()
        self.directory.close()
        self.folder.cleanup()


def twice(rows: list[int]) -> list[int]:
    return [value for row in rows for value in (row, -row)]


def pieces(values: list[int]) -> list[Piece]:
    """Cut values into pieces of up to three."""
    cut = [values[at : at + 3] for at in range(0, len(values), 3)]
    return [Piece(len(some), CODEC.encode_rows(some)) for some in cut]


class Crash(BaseException):
    """The process ends here."""


class _Crashing:
    """A database that ends the process at COMMIT."""

    def __init__(self, db: Any, after: bool) -> None:
        self._db = db
        self._after = after

    def execute(self, sql: str, *values: Any) -> Any:
        if sql == "COMMIT":
            if self._after:
                self._db.execute(sql)
            raise Crash
        return self._db.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def crash_before_commit(journal: Any) -> None:
    journal._db = _Crashing(journal._db, after=False)


def crash_after_commit(journal: Any) -> None:
    journal._db = _Crashing(journal._db, after=True)


def attempts_whose_tuples_hash_alike(count: int) -> Iterator[tuple[int, int]]:
    """Return pairs of a partition and an attempt; a tuple's hash has no secret (tupleobject.c)."""
    whole, prime = 2**64, 2**61 - 1
    first, second, fifth = 11400714785074694791, 14029467366897019727, 2870177450012600261
    inverse = pow(second, -1, whole)
    for partition in range(2**32):
        mixed = (fifth + partition * second) % whole
        mixed = (mixed << 31 | mixed >> 33) % whole * first % whole
        attempt = (123_456_789 - mixed) * inverse % whole
        if attempt < prime:  # of which the hash is the number itself
            yield partition, attempt
            count -= 1
        if not count:
            return


def test_a_client_cannot_choose_attempts_whose_keys_collide(tmp_path: Path) -> None:
    """60,000 whose tuples hash alike took a minute, in which nobody else could stage rows."""
    chosen = [*attempts_whose_tuples_hash_alike(1_000)]
    assert len({*map(hash, chosen)}) == 1
    directory = StateDirectory(tmp_path)
    journal = Journal(directory.journal)
    store = StagingStore(directory, journal, Backlog(journal, [], 0), lambda *_: 0)
    for partition, attempt in chosen:
        store.begin(Begin(0, 0, BatchName("job", 1), partition, attempt), "it")
    (parts,) = store._batches.values()
    assert len({*map(hash, parts)}) == store.attempts == 1_000
    store.abort(BatchName("job", 1))
    assert not store._batches
    journal.close()
    directory.close()


TestMachine = Machine.TestCase
