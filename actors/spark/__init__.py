"""Feed the partitions of Spark jobs to graphs of actors.

`foreach_partition`, `map_partitions` and `map_in_arrow` make functions for Spark's methods of
those names; `join_frames` joins two frames by a stream; `hot_keys` counts what is frequent;
`session` makes a Spark session that works at once. The layers, each importing only those before
it: `context`, `errors` and `options`; `trial`, `pickling` and `settings`, what goes out; `arrow`
and `schema`, what comes back; `host`, the process's actor system; `feed`, batches in and answers
out; `partitions`, what Spark calls; `join_task`, a stream in a partition, and `join_frames`, which
makes such partitions. `java`, `session` and `hot_keys` stand beside them and need no actors.
"""

from callboard.spark.context import PartitionContext, PartitionEnd, PartitionStart
from callboard.spark.errors import (
    AnswerError,
    CaptureError,
    EntryPointError,
    PartitionFailed,
    SchemaError,
)
from callboard.spark.hot_keys import hot_keys
from callboard.spark.join_frames import join_frames
from callboard.spark.partitions import foreach_partition, map_in_arrow, map_partitions
from callboard.spark.session import session

__all__ = [
    "AnswerError",
    "CaptureError",
    "EntryPointError",
    "PartitionContext",
    "PartitionEnd",
    "PartitionFailed",
    "PartitionStart",
    "SchemaError",
    "foreach_partition",
    "hot_keys",
    "join_frames",
    "map_in_arrow",
    "map_partitions",
    "session",
]
