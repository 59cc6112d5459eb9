"""Connections to several servers used as one, each of which has the rows of its keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from callboard import Future
from callboard.core.errors import ConfigError
from callboard.core.handles import CopiedAsItself, public_names
from callboard.core.text import safe_repr
from callboard.core.threads.blocking import refuse_to_block
from callboard.in_thread import InThread
from callboard.remote.client.connection import Connection, connect
from callboard.remote.client.writer import UploadWriter
from callboard.remote.errors import BatchCommitted, CommitConflict
from callboard.remote.protocol.requests import StagedAttempt
from callboard.remote.protocol.shard import MOST, Shard
from callboard.remote.sharding.keys import By, ShardKey, divide_batch
from callboard.remote.sharding.ref import ShardedRef, portions

if TYPE_CHECKING:
    import pyarrow as pa


_ROWS = 1024  # that are divided at a time, times the number of shards


class ShardAttempt(NamedTuple):
    """A staged attempt at a partition on one shard, with its number of rows."""

    shard: int
    partition: int
    attempt: int
    rows: int


class ShardedUpload:
    """One attempt at a partition of a batch, on several servers: a context manager for one thread.

    Leaving it waits until all rows are staged, like an UploadWriter. A shard without rows does not
    know of the attempt.
    """

    __dir__ = public_names

    def __init__(
        self,
        begin: Callable[[int], UploadWriter],
        key: ShardKey,
        shards: Collection[int],
        skip_committed: bool,
    ) -> None:
        """`begin` makes the upload of a shard; rows of shards not in `shards` are left out."""
        self._begin = begin
        self._key = key
        self._shards = set(shards)
        self._skip_committed = skip_committed
        self._open: dict[int, UploadWriter] = {}
        self._ends = ExitStack()
        self.staged: list[ShardAttempt] = []
        """Each shard's staged attempt, after the end; small enough to send to a driver."""
        self.committed: set[int] = set()
        """With `skip_committed`, the shards that had committed the batch before."""

    def __enter__(self) -> Self:
        return self

    def send_many(self, rows: Iterable[Any]) -> None:
        """Upload each row to the shard of its key. See `UploadWriter.send_many()`.

        Raises UploadRefused, BatchCommitted and ConnectionLost when a shard gets its first row, and
        CodecError for rows without a key.
        """
        for portion in portions(rows, "send_many", _ROWS * self._key.shards):
            for shard, part in enumerate(self._key.divide(portion)):
                if part and (upload := self._upload(shard)) is not None:
                    upload.send_many(part)

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Upload a record batch, each shard's rows as one batch. Raises like `send_many`."""
        for shard, part in enumerate(divide_batch(batch, self._key)):
            if part.num_rows and (upload := self._upload(shard)) is not None:
                upload.send_batch(part)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.__exit__(kind, error, trace)
        if kind is None:
            self.staged = [
                ShardAttempt(shard, *upload.staged)
                for shard, upload in sorted(self._open.items())
                if upload.staged is not None
            ]

    def _upload(self, shard: int) -> UploadWriter | None:
        """Return the upload of a shard, begun for its first row; None if its rows are left out."""
        if shard not in self._shards:
            return None
        upload = self._open.get(shard)
        if upload is None:
            try:
                upload = self._ends.enter_context(self._begin(shard))
            except BatchCommitted:
                if not self._skip_committed:
                    raise
                self._shards.remove(shard)
                self.committed.add(shard)
                return None
            self._open[shard] = upload
        return upload


T = TypeVar("T")


class ShardedConnection(CopiedAsItself):
    """A client's connections to several servers, the shards, in order.

    Thread-safe, and can be pickled like a Connection. Leaving its `with` block waits until all told
    messages are handled.
    """

    def __init__(self, shards: Iterable[Connection]) -> None:
        self.shards = tuple(shards)
        """The connection to each shard."""

    def ref(self, name: str, *, by: By) -> ShardedRef:
        """Return a ref to the entry points of this name, for rows with a key.

        Args:
            name: The name of the entry points.
            by: The key of a row. It is the name of a column of record batches, or of a dictionary's
                item or an attribute; several names, for a tuple of their values; or a function of
                the row.
        """
        return ShardedRef(self.shards, name, by)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages are handled. `timeout` defaults to the connections'.

        Raises the error of any connection's flush.
        """
        self.shards[0]._refuse_to_block("flush()", "await aflush()")
        deadline = time.monotonic() + self.shards[0]._seconds(timeout)
        for shard in self.shards:
            shard.flush(max(0.0, deadline - time.monotonic()))

    def aflush(self, timeout: float | None = None) -> Future[None]:
        """Like flush(), but return a future to await in an event loop."""
        return InThread("callboard-flush", lambda _: self.flush(timeout))

    def health(self) -> list[Future[dict[str, Any]]]:
        """Ask each server for its health."""
        return [shard.health() for shard in self.shards]

    # --- rows that count once ---------------------------------------------------------------------

    def upload(
        self,
        entry: str,
        *,
        by: By,
        job: str,
        batch: int = 0,
        partition: int = 0,
        attempt: int = 0,
        shards: Collection[int] | None = None,
        skip_committed: bool = False,
    ) -> ShardedUpload:
        """Return an upload whose rows go to the shards of their keys. See `Connection.upload()`.

        Args:
            entry: The name of the entry points.
            by: The key of a row, as for `ref()`.
            job: A unique name of the job.
            batch: The number of the batch in the job, a 64-bit integer.
            partition: The number of the partition in the batch.
            attempt: A number that is different for each attempt at a partition.
            shards: The shards to upload to, as returned by `abort()`; rows of others are left out.
            skip_committed: Leave out rows of shards that have committed the batch, and list these
                shards in the upload's `committed`. Otherwise BatchCommitted is raised. The commit
                must use the same option.
        """

        def begin(shard: int) -> UploadWriter:
            return self.shards[shard].upload(
                entry, job=job, batch=batch, partition=partition, attempt=attempt
            )

        chosen = range(len(self.shards)) if shards is None else shards
        return ShardedUpload(begin, ShardKey(by, len(self.shards)), chosen, skip_committed)

    def commit(
        self,
        job: str,
        batch: int,
        winners: Iterable[ShardAttempt],
        timeout: float | None = None,
        *,
        shards: Collection[int] | None = None,
        skip_committed: bool = False,
    ) -> None:
        """Commit a batch on each shard, or on `shards`, in parallel. See `Connection.commit()`.

        The commit is atomic on each shard, but not across shards. If it raises, or if this process
        ends, only some shards may have committed: `abort()` returns the others. When all are done,
        it raises the error of the first shard that failed.

        With `skip_committed`, for winners of uploads with the same option, a shard without a winner
        that has committed the batch before does not raise CommitConflict.
        """
        chosen = sorted(range(len(self.shards)) if shards is None else shards)
        of_shards: dict[int, list[StagedAttempt]] = {shard: [] for shard in chosen}
        for shard, *winner in winners:
            if shard not in of_shards:
                raise ValueError(
                    f"expected winners of the shards {chosen}, got one of shard {shard}"
                )
            of_shards[shard].append(StagedAttempt(*winner))

        def commit(shard: int) -> None:
            try:
                self.shards[shard].commit(job, batch, of_shards[shard], timeout)
            except CommitConflict:
                if of_shards[shard] or not skip_committed:
                    raise

        self._on_each(chosen, commit)

    def acommit(
        self,
        job: str,
        batch: int,
        winners: Iterable[ShardAttempt],
        timeout: float | None = None,
        **options: Any,
    ) -> Future[None]:
        """Like commit(), but return a future to await in an event loop."""
        call = partial(self.commit, job, batch, winners, timeout, **options)
        return InThread("callboard-commit", lambda _: call())

    def abort(self, job: str, batch: int, timeout: float | None = None) -> list[int]:
        """Drop the staged rows of a batch, and return the shards that have not committed it.

        They may be staged again there. Raises BatchCommitted if all shards have committed it, and
        ConnectionLost.
        """

        def is_left(shard: int) -> bool:
            try:
                self.shards[shard].abort(job, batch, timeout)
            except BatchCommitted:
                return False
            return True

        every = range(len(self.shards))
        left = self._on_each(every, is_left)
        if not any(left):
            raise BatchCommitted(f"batch {batch} of the job {job!r} is committed on every shard")
        return [shard for shard in every if left[shard]]

    def aabort(self, job: str, batch: int, timeout: float | None = None) -> Future[list[int]]:
        """Like abort(), but return a future to await in an event loop."""
        return InThread("callboard-abort", lambda _: self.abort(job, batch, timeout))

    def _on_each(self, shards: Collection[int], work: Callable[[int], T]) -> list[T]:
        """Do work for several shards in parallel; raise the error of the first that failed."""
        self.shards[0]._refuse_to_block("commit() or abort()", "await acommit() or aabort()")
        with ThreadPoolExecutor(max(1, len(shards)), "callboard-shards") as threads:
            futures = [threads.submit(work, shard) for shard in shards]
        return [future.result() for future in futures]

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection to every server. See `Connection.close()`."""
        refuse_to_block("close()", "await aclose()")
        with ExitStack() as ends:
            for shard in self.shards:
                ends.callback(shard.close)

    def aclose(self) -> Future[None]:
        """Like close(), but return a future to await in an event loop."""
        return InThread("callboard-close", lambda _: self.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<ShardedConnection to {len(self.shards)} servers>"


def connect_sharded(urls: Sequence[str], **options: Any) -> ShardedConnection:
    """Connect to several servers, the shards in order, in parallel.

    The first of N servers was started with `--shard 0/N`, the next with `1/N`. Every sender sends a
    row to the shard of its key. So the number of shards never changes, and the rows of a key stay
    on their shard. The options are those of `connect()`, for all servers.

    Raises the errors of `connect()`: ConnectionRejected also for a server that is another shard, or
    no shard.
    """
    if isinstance(urls, str) or not 0 < len(urls) <= MOST:
        raise ConfigError(f"expected the addresses of 1 to {MOST} servers, got {safe_repr(urls)}")
    refuse_to_block("connect_sharded()", "await aconnect_sharded()")
    count = len(urls)
    with ThreadPoolExecutor(min(count, 32), "callboard-connect") as threads:
        futures = [
            threads.submit(partial(connect, url, shard=str(Shard(index, count)), **options))
            for index, url in enumerate(urls)
        ]
    with ExitStack() as made:
        for future in futures:
            if future.exception() is None:
                made.callback(future.result().close)
        connections = [future.result() for future in futures]
        made.pop_all()
    return ShardedConnection(connections)


def aconnect_sharded(urls: Sequence[str], **options: Any) -> Future[ShardedConnection]:
    """Like connect_sharded(), but return a future of the connection."""
    return InThread("callboard-connect", lambda _: connect_sharded(urls, **options))
