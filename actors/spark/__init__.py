"""Feed the partitions of Spark jobs to graphs of actors.

`foreach_partition`, `map_partitions` and `map_in_arrow` make functions for Spark's methods of
those names, and `spark_graph` those that run a graph of streams; `by_key` brings rows of a key into
one partition, in order; `join_frames` joins two frames by a stream; `hot_keys` counts what is
frequent; `session` makes a Spark session that works at once. The layers, each importing only those
before it: `context`, `errors` and `options`; `trial`, `pickling` and `settings`, what goes out;
`arrow`, `schema` and `frame_rows`, what comes back; `host`, the process's actor system; `feed`,
batches in and answers out, and `partitions`, what Spark calls; `graph_task`, a run of streams in a
task, and `graphs`, what Spark calls; `by_key`; `join_task`, a stream of two sides, and
`join_frames`; `keyed_state` and `state_processor`, which run no actors, and leave state to Spark.
`java`, `session` and `hot_keys` stand beside them and need no actors of their own; neither do
partitions to actors of another process: `source_options`; `stage_task`, what a task does, and
`delivery`; `sink`, `batch_writer` and `stream_writer`, `published_range`, `batch_reader` and
`stream_reader`, `data_source` and `registering`, a format of Spark's. Errors are imported from
`callboard.spark.errors`.
"""

from callboard.spark.by_key import by_key
from callboard.spark.context import PartitionContext, PartitionEnd, PartitionStart
from callboard.spark.delivery import deliver
from callboard.spark.graphs import SparkGraph, spark_graph
from callboard.spark.hot_keys import hot_keys
from callboard.spark.join_frames import join_frames
from callboard.spark.keyed_state import KeyedState, keyed_state
from callboard.spark.partitions import foreach_partition, map_in_arrow, map_partitions
from callboard.spark.registering import register
from callboard.spark.session import session

__all__ = [
    "KeyedState",
    "PartitionContext",
    "PartitionEnd",
    "PartitionStart",
    "SparkGraph",
    "by_key",
    "deliver",
    "foreach_partition",
    "hot_keys",
    "join_frames",
    "keyed_state",
    "map_in_arrow",
    "map_partitions",
    "register",
    "session",
    "spark_graph",
]
