"""The store of staged rows, until they are committed or dropped."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from struct import Struct

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.log import log
from callboard.remote.errors import (
    BatchCommitted,
    CommitConflict,
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
)
from callboard.remote.storage.database import may_pass
from callboard.remote.storage.journal import Journal
from callboard.remote.storage.parts import StagedPart
from callboard.remote.storage.state_directory import StateDirectory
from callboard.remote.wire.frames import Buffer


class Backlog:
    """The limit of published rows, at which commits are refused, and committed batches wait.

    The rows that a batch publishes are known only when it has been applied, after its commit. So at
    the limit, a batch with rows for a publishing entry is refused, and a committed one waits to be
    applied, until rows are released. At most the rows of one batch exceed the limit.
    """

    def __init__(self, journal: Journal, publishers: Iterable[str], most: int) -> None:
        """Limit the entries `publishers` to `most` bytes together; 0 is no limit."""
        self._journal = journal
        self._publishers = frozenset(publishers)
        self._most = most
        self._is_holding = False

    @property
    def bytes(self) -> int:
        """The number of unreleased bytes of all entries. In any thread."""
        return sum(self._journal.unreleased_bytes.values())

    @property
    def is_holding(self) -> bool:
        """Whether a committed batch still waits for a release. In any thread."""
        return self._is_holding and self._is_full

    @property
    def _is_full(self) -> bool:
        return 0 < self._most <= self.bytes

    def holds(self, name: BatchName, entries: Collection[str]) -> bool:
        """Tell whether a committed batch must wait, and note it. Called by the applier."""
        self._is_holding = self._is_full and not self._publishers.isdisjoint(entries)
        if self._is_holding:
            log.warning("batch waits for a release", batch=str(name), bytes=self.bytes)
        return self._is_holding

    def refuse(self, name: BatchName, entries: Collection[str]) -> None:
        """Raise UploadRefused if a batch cannot be committed now.

        It may be committed later. While a committed batch waits, all others are refused, as the
        journal would grow.
        """
        if not self._is_full or (self._publishers.isdisjoint(entries) and not self._is_holding):
            return
        kept = self._journal.unreleased_bytes
        most = max(kept, key=kept.__getitem__)
        raise UploadRefused(
            f"{name} is not committed: {self.bytes} bytes of published rows wait for readers, "
            f"{kept[most]} of them of the entry {most!r}, and the limit is {self._most}. Commit it "
            f"again after a release, as by connection.published({most!r}).release(), or raise the "
            "server's --max-published-bytes"
        )


LONGEST_PAYLOAD = 10**9  # the limit of SQLite in most builds

_KEY = Struct("!IQ")  # partition, attempt


@dataclass(frozen=True)
class StagingLimits:
    """Limits of staged and published rows, for all clients together."""

    staged_memory: int = 256 * 2**20
    """Bytes of rows in memory; more go to files."""
    staged_bytes: int = 16 * 2**30
    """Bytes of rows in files; more are refused."""
    staged_attempts: int = 100_000
    """Attempts at partitions; more are refused."""
    staged_age: float = 3600.0
    """Seconds without a request after which staged rows are dropped."""
    published_bytes: int = 16 * 2**30
    """Bytes of unreleased rows at which commits for publishing entries are refused; 0: no limit."""

    def __post_init__(self) -> None:
        for name in ("staged_memory", "staged_bytes", "published_bytes"):
            checks.whole(name, getattr(self, name), 0, error=ConfigError)
        checks.whole("staged_attempts", self.staged_attempts, error=ConfigError)
        checks.seconds("staged_age", self.staged_age, zero=False, error=ConfigError)


class StagingStore:
    """Staged parts, and the journal that gets the winners. Used by one thread.

    A part belongs to one attempt. It is dropped by a commit of others, by an abort, by age, and by
    any error in it. Later rows for it are refused for the same reason.
    """

    def __init__(
        self,
        directory: StateDirectory,
        journal: Journal,
        backlog: Backlog,
        rows_in: Callable[[Layout, Buffer], int],
        limits: StagingLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rows_in` counts the rows of a payload, and raises CodecError if they cannot be read."""
        self.limits = limits or StagingLimits()
        self.memory = 0
        """Bytes of staged rows in memory."""
        self.disk = 0
        """Bytes of staged rows in files."""
        self.attempts = 0
        """The number of staged attempts, complete or not."""
        self.late = 0
        """The number of requests for a batch that was committed."""
        self.expired = 0
        """The number of parts that were dropped by age."""
        self._folder = directory.staged
        self._journal = journal
        self._backlog = backlog
        self._rows_in = rows_in
        self._clock = clock
        self._batches: dict[BatchName, dict[bytes, StagedPart]] = {}
        self._numbers = count()

    # --- parts ------------------------------------------------------------------------------------

    def begin(self, begun: Begin, entry: str) -> StagedPart:
        """Begin a part. Raises UploadRefused, BatchCommitted."""
        if self._journal.is_committed(begun.name):
            raise self._lateness(begun.name)
        if self.memory >= self.limits.staged_memory:
            self._refuse_beyond(1)
        if self.attempts >= self.limits.staged_attempts:
            raise UploadRefused(f"{self.attempts} attempts are staged, which is the limit")
        parts = self._batches.setdefault(begun.name, {})
        key = _key(begun.partition, begun.attempt)
        if key in parts:
            raise UploadRefused(f"{parts[key]} is already staged: each attempt needs a new id")
        file = self._folder / str(next(self._numbers))
        part = parts[key] = StagedPart(begun, entry, file, self._clock())
        self.attempts += 1
        return part

    def add(self, part: StagedPart, data: UploadRows, found: int | None = None) -> None:
        """Keep rows of a part; `found` is their number if they were counted before.

        Raises UploadRefused, or the reason why the part was dropped.
        """
        with self._touching(part):
            size = len(data.payload)
            if size > LONGEST_PAYLOAD:
                raise UploadRefused(
                    f"expected at most {LONGEST_PAYLOAD} bytes of rows in a frame, got {size}"
                )
            if found is None:
                found = self._rows_in(data.layout, data.payload)
            if found != data.rows or not found:
                raise UploadRefused(f"expected {data.rows} rows, as announced, got {found}")
            to_file = self.memory + size > self.limits.staged_memory
            if to_file:
                self._refuse_beyond(size)
            before = part.memory, part.disk
            part.add(data, to_file)
            self.memory += part.memory - before[0]
            self.disk += part.disk - before[1]

    def end(self, part: StagedPart, end: UploadEnd) -> int:
        """Complete a part, and return its rows. Raises like `add()`."""
        with self._touching(part):
            part.end(end)
        return part.rows

    def drop(self, part: StagedPart, why: RemoteError) -> None:
        """Drop a part, for this reason, once."""
        self.memory -= part.memory
        self.disk -= part.disk
        self.attempts -= 1
        part.drop(why)
        parts = self._batches[part.name]
        parts.pop(_key(part.partition, part.attempt), None)
        if not parts:
            del self._batches[part.name]

    def expire(self) -> None:
        """Drop the parts that are too old."""
        oldest = self._clock() - self.limits.staged_age
        for part in [part for part in self.parts() if part.touched < oldest]:
            self.expired += 1
            log.warning("staged rows expired", part=str(part), rows=part.rows)
            self.drop(part, UploadRefused(f"{part} was silent for {self.limits.staged_age:g} s"))

    def parts(self) -> Iterator[StagedPart]:
        """Return all staged parts, complete or not."""
        return (part for parts in self._batches.values() for part in parts.values())

    # --- batches ----------------------------------------------------------------------------------

    def commit(self, name: BatchName, winners: Sequence[StagedAttempt]) -> int | None:
        """Commit a batch, and return its number; None if it was committed before.

        `winners` are ordered by partition. Raises CommitConflict, NotUploaded, and UploadRefused if
        it cannot be written, or the limit of published rows is reached; then the commit may be
        retried.
        """
        if self._journal.is_committed(name):
            if self._journal.has_winners(name, winners):
                return None
            log.error("commit conflict", batch=str(name), winners=len(winners))
            raise CommitConflict(
                f"{name} is committed with other winners than the {len(winners)} given"
            )
        parts = [self._winning_part(name, winner) for winner in winners]
        self._backlog.refuse(name, {part.entry for part in parts})
        try:
            number = self._journal.append(name, winners, parts)
        except (sqlite3.Error, OSError) as error:
            log.error("commit failed", batch=str(name), error=error)
            later = ""
            if may_pass(error) or isinstance(error, OSError):
                later = ". Nothing of it is committed, and it stays staged: commit it again later"
            raise UploadRefused(f"{name} cannot be written: {error}{later}") from error
        self._drop_all(name, BatchCommitted(f"{name} is committed"))
        return number

    def abort(self, name: BatchName) -> None:
        """Drop the staged rows of a batch, which may be staged again. Raises BatchCommitted."""
        if self._journal.is_committed(name):
            raise BatchCommitted(f"{name} is committed, and cannot be aborted")
        self._drop_all(name, UploadRefused(f"{name} was aborted"))

    def _winning_part(self, name: BatchName, winner: StagedAttempt) -> StagedPart:
        part = self._batches.get(name, {}).get(_key(winner.partition, winner.attempt))
        who = f"attempt {winner.attempt} at partition {winner.partition} of {name}"
        if part is None:
            raise NotUploaded(f"{who} is not staged")
        if not part.is_complete:
            raise NotUploaded(f"{who} has not ended")
        if part.rows != winner.rows:
            raise NotUploaded(f"{who} is staged with {part.rows} rows, not with {winner.rows}")
        return part

    @contextmanager
    def _touching(self, part: StagedPart) -> Iterator[None]:
        """Refuse a part that was dropped, and drop it if it fails."""
        if isinstance(part.trouble, BatchCommitted):
            raise self._lateness(part.name)
        if part.trouble is not None:
            raise type(part.trouble)(str(part.trouble))
        part.touched = self._clock()
        try:
            yield
        except RemoteError as error:
            self.drop(part, error)
            raise

    def _drop_all(self, name: BatchName, why: RemoteError) -> None:
        for part in list(self._batches.get(name, {}).values()):
            self.drop(part, why)

    def _refuse_beyond(self, more: int) -> None:
        if self.disk + more > self.limits.staged_bytes:
            raise UploadRefused(
                f"{self.memory} bytes of rows are staged in memory, {self.disk} in files, where "
                f"the limit is {self.limits.staged_bytes}"
            )

    def _lateness(self, name: BatchName) -> BatchCommitted:
        self.late += 1
        log.info("late rows refused", batch=str(name))
        return BatchCommitted(f"{name} is committed: later rows are refused")


def _key(partition: int, attempt: int) -> bytes:
    """Return a key whose hash no client can choose, other than that of two numbers."""
    return _KEY.pack(partition, attempt)
