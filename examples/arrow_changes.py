"""The demo's actors on Spark's fast path: changes come and records leave in record batches.

A row that Spark pickles costs more than all that the actors do with it; a record batch goes to the
worker process and back as it lies in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa

from callboard import ActorRef, ActorSystem
from callboard.spark import PartitionContext, PartitionEnd
from sessions import Change, FileCount, Record, Session, Tracker

_RECORDS = pa.schema(
    [
        ("author", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("commits", pa.int32()),
        ("changes", pa.int32()),
        ("lines", pa.int64()),
        ("repo", pa.string()),
        ("path", pa.string()),
    ]
)
"""Sessions and counts of files in one table: a session has no repo, a file's count no author."""

RECORDS = (
    "author int, start long, end long, commits int, changes int, lines long, "
    "repo string, path string"
)
"""The same, as Spark says it."""


class ArrowChanges(Tracker[pa.RecordBatch | PartitionEnd, pa.RecordBatch]):
    """Takes changes as record batches, and answers with the records that each completes as one."""

    async def receive(self, message: pa.RecordBatch | PartitionEnd) -> pa.RecordBatch:
        if isinstance(message, PartitionEnd):
            return batch_of(await self.complete(message))
        columns = message.to_pydict().values()
        # Plain tuples in a Change's order: to make named ones takes longer than all the rest.
        changes = cast("list[Change]", list(zip(*columns, strict=True)))
        return batch_of(await self.complete(changes))


def batch_of(records: Iterable[Record]) -> pa.RecordBatch:
    """Return records as a record batch."""
    rows = [
        (r.author, r.start, r.end, r.commits, r.changes, r.lines, None, None)
        if isinstance(r, Session)
        else (None, None, None, None, r.changes, None, r.repo, r.path)
        for r in records
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(_RECORDS)
    arrays = [pa.array(c, kind) for c, kind in zip(columns, _RECORDS.types, strict=True)]
    return pa.record_batch(arrays, schema=_RECORDS)


def records_of(table: pa.Table) -> Iterator[Record]:
    """Yield the records of a table of them."""
    columns = (column.to_pylist() for column in table.columns)
    for author, start, end, commits, changes, lines, repo, path in zip(*columns, strict=True):
        if repo is None:
            yield Session(author, start, end, commits, changes, lines)
        else:
            yield FileCount(repo, path, changes)


def build(
    system: ActorSystem, context: PartitionContext
) -> ActorRef[pa.RecordBatch | PartitionEnd]:
    """Spawn the actors for one partition, and return their entry point."""
    return system.spawn(ArrowChanges, shards=context.cpus)
