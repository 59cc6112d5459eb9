"""Streaming reads; importing this module needs PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.remote.errors import NotPublished
from callboard.remote.protocol.shard import Shard
from callboard.spark.source import published_range
from callboard.spark.source.published_range import RowRange, divided, published
from callboard.spark.source.remote_entry import RemoteEntry

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before PySpark 4.2, where a run of the available rows is one micro-batch
    SupportsTriggerAvailableNow = object  # type: ignore[misc, assignment]

Offset = dict[str, int]  # the number of the next row, of each server


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads published rows, and by option releases those that a query has processed."""

    def __init__(self, remote: RemoteEntry, schema: StructType, parts: int, releases: bool) -> None:
        self._remote = remote
        self._schema = schema
        self._parts = parts
        self._releases = releases
        count = remote.servers
        self._names = ["row"]  # in offsets
        if count > 1:
            self._names = [f"row of {Shard(index, count)}" for index in range(count)]
        self._last: Offset | None = None  # the end of a run over the available rows

    # Spark calls these under these names; the first of them for a query without a checkpoint only.

    def initialOffset(self) -> Offset:  # noqa: N802
        """Begin with the first row that was not released."""
        with published(self._remote) as servers:
            return self._offset([rows.earliest() for rows in servers])

    def latestOffset(self, start: Any = None, limit: Any = None) -> Offset:  # noqa: N802
        """Return the end of the published rows; a micro-batch has all of them."""
        if self._last is not None:
            return self._last
        with published(self._remote) as servers:
            return self._offset([rows.latest() for rows in servers])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the end of the published rows: later ones are left to another run."""
        self._last = self.latestOffset()

    def partitions(self, start: Offset, end: Offset) -> list[RowRange]:
        """Divide the rows of a micro-batch, which may have begun before a restart."""
        bounds = [*zip(self._rows(start), self._rows(end), strict=True)]
        for name, (first, last) in zip(self._names, bounds, strict=True):
            if last < first:
                raise NotPublished(
                    f"{self._remote.entry!r} has published {last} rows, but the checkpoint of the "
                    f"query has read {first} ({name}): is this the right state directory?"
                )
        return [
            part
            for shard, (first, last) in enumerate(bounds)
            for part in divided(first, last, self._parts, shard)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition, in each task."""
        return published_range.read(self._remote, partition, self._schema)

    def commit(self, end: Offset) -> None:
        """Release the rows of a micro-batch; called when the next one begins."""
        if self._releases:
            with published(self._remote) as servers:
                for rows, row in zip(servers, self._rows(end), strict=True):
                    rows.release(row)

    def _offset(self, rows: list[int]) -> Offset:
        return dict(zip(self._names, rows, strict=True))

    def _rows(self, offset: Offset) -> list[int]:
        if offset.keys() != set(self._names):
            raise ConfigError(
                f"the checkpoint belongs to servers other than those in the option 'url': expected "
                f"{', '.join(self._names)}, got {offset}"
            )
        return [offset[name] for name in self._names]
