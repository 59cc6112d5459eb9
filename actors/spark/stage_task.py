"""A task that stages its partition on a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from callboard.remote import Winner, connect
from callboard.spark.source_options import RemoteEntry

if TYPE_CHECKING:
    import pyarrow as pa

    from callboard.remote.staging.messages import BatchName


def stage_partition(
    place: RemoteEntry,
    name: BatchName,
    partition: int,
    attempt: int,
    batches: Iterable[pa.RecordBatch],
) -> Winner | None:
    """Stage record batches, and return which attempt that is; None if there are no rows.

    Raises BatchCommitted, StageRefused, ConnectionLost, and what `batches` raises.
    """
    source = (batch for batch in batches if batch.num_rows)
    first = next(source, None)
    if first is None:
        return None
    connection = connect(place.url, **place.connection)
    try:
        stage = connection.stage(
            place.entry, job=name.job, batch=name.batch, partition=partition, attempt=attempt
        )
        with stage:
            stage.send_batch(first)
            for batch in source:
                stage.send_batch(batch)
    finally:
        connection.close()
    return stage.staged
