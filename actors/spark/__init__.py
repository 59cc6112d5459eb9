"""Feed the partitions of Spark jobs to graphs of actors.

`foreach_partition`, `map_partitions` and `map_in_arrow` make functions for Spark's methods of those
names. `spark_graph` makes functions that run a graph of streams. `by_key` brings rows of a key into
one partition, in order. `join_frames` joins two frames by a stream. `hot_keys` counts frequent
keys. `TaskCounters` tell the driver what tasks do. `keyed_state` leaves the state of actors to
Spark. `deliver` and `register` bring rows to actors of another process. `session` makes a Spark
session that works at once. Errors are imported from `callboard.spark.errors`.
"""

from callboard.spark.context import PartitionContext, PartitionEnd, PartitionStart
from callboard.spark.frames.by_key import by_key
from callboard.spark.sessions.session import session
from callboard.spark.source.delivery import deliver
from callboard.spark.source.registering import register
from callboard.spark.tasks.counters import EntryCounts, TaskCounters
from callboard.spark.tasks.graphs import SparkGraph, spark_graph
from callboard.spark.tasks.hot_keys import hot_keys
from callboard.spark.tasks.join_frames import join_frames
from callboard.spark.tasks.keyed_state import KeyedState, keyed_state
from callboard.spark.tasks.partitions import foreach_partition, map_in_arrow, map_partitions

__all__ = [
    "EntryCounts",
    "KeyedState",
    "PartitionContext",
    "PartitionEnd",
    "PartitionStart",
    "SparkGraph",
    "TaskCounters",
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
