"""Rows that count once, staged on several servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from callboard.core.handles import public_names
from callboard.remote.client.writer import UploadWriter
from callboard.remote.errors import BatchCommitted
from callboard.remote.sharding.columns import divide_batch
from callboard.remote.sharding.keys import ShardKey
from callboard.remote.sharding.ref import portions

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1024  # that are divided at a time, times the number of shards


class ShardAttempt(NamedTuple):
    """An attempt at a partition that is staged on a shard, with how many rows."""

    shard: int
    partition: int
    attempt: int
    rows: int


class ShardedUpload:
    """One attempt at a partition of a batch, on several servers: a context manager, for one thread.

    Leaving it waits until all rows are staged, as that of an UploadWriter does. A shard for which
    no row comes knows nothing of the attempt.
    """

    __dir__ = public_names

    def __init__(
        self,
        begin: Callable[[int], UploadWriter],
        key: ShardKey,
        shards: Collection[int],
        skip_committed: bool,
    ) -> None:
        """`begin` makes the upload of a shard; rows of others than `shards` are left out."""
        self._begin = begin
        self._key = key
        self._shards = set(shards)
        self._skip_committed = skip_committed
        self._open: dict[int, UploadWriter] = {}
        self._ends = ExitStack()
        self.staged: list[ShardAttempt] = []
        """Each shard's staged part, after the end: small, and made to be sent to the driver."""
        self.committed: set[int] = set()
        """With `skip_committed`, the shards that were found to have committed the batch before."""

    def __enter__(self) -> Self:
        return self

    def send_many(self, rows: Iterable[Any]) -> None:
        """Upload each row on the shard of its key. As `UploadWriter.send_many()`.

        Raises UploadRefused, BatchCommitted and ConnectionLost of a shard that gets its first row;
        CodecError for rows without a key.
        """
        for portion in portions(rows, "send_many", _ROWS * self._key.shards):
            for shard, part in enumerate(self._key.divide(portion)):
                if part and (upload := self._upload(shard)) is not None:
                    upload.send_many(part)

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Upload a record batch, each shard's rows of it as one. Raises like `send_many`."""
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
