"""A task that uploads its partition, on a server or on several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from callboard.core.errors import ConfigError
from callboard.remote import Connection, ShardedConnection, ShardedUpload, UploadWriter

if TYPE_CHECKING:
    import pyarrow as pa

C = TypeVar("C", Connection, ShardedConnection, Connection | ShardedConnection)
S = TypeVar("S", UploadWriter, ShardedUpload, UploadWriter | ShardedUpload)


def upload_partition(
    connect: Callable[[], C], begin: Callable[[C], S], batches: Iterable[pa.RecordBatch]
) -> S | None:
    """Upload record batches, and return the upload, which has ended; None if there are no rows.

    Connects, and begins the upload, when there is a row. Raises BatchCommitted, UploadRefused,
    ConnectionLost, and the arguments' exceptions.
    """
    source = (batch for batch in batches if batch.num_rows)
    first = next(source, None)
    if first is None:
        return None
    connection = connect()
    try:
        upload = begin(connection)
        with upload:
            upload.send_batch(first)
            for batch in source:
                upload.send_batch(batch)
    finally:
        connection.close()
    return upload


def refuse_without_columns(names: Sequence[str]) -> None:
    """Raise ConfigError for a frame without columns: Spark tells a task nothing of its rows."""
    if not names:
        raise ConfigError(
            "the frame has no columns, and Spark hands no rows of such a frame on: select one"
        )
