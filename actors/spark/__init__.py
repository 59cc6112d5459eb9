"""Processes the partitions of Spark jobs with graphs of actors.

`foreach_partition`, `map_partitions` and `map_in_arrow` make functions for Spark's methods of those
names. `spark_graph` makes functions that run a graph of streams. `by_key` puts the rows of each key
in one partition, in order. `join_frames` joins two frames with a stream. `hot_keys` counts frequent
keys. `TaskCounters` report the tasks' work to the driver. `keyed_state` stores the state of actors
in Spark. `deliver` and `register` send rows to actors in another process. `session` makes a Spark
session that works immediately. Import errors from `callboard.spark.errors`.
"""

from callboard.spark.context import PartitionContext, PartitionEnd, PartitionStart
from callboard.spark.frames.by_key import by_key
from callboard.spark.sessions.session import session
from callboard.spark.source.delivery import deliver
from callboard.spark.source.registering import register
from callboard.spark.tasks.counters import TaskCounters
from callboard.spark.tasks.graphs import SparkGraph, spark_graph
from callboard.spark.tasks.hot_keys import hot_keys
from callboard.spark.tasks.join_frames import join_frames
from callboard.spark.tasks.keyed_state import KeyedState, keyed_state
from callboard.spark.tasks.partitions import foreach_partition, map_in_arrow, map_partitions

__all__ = [
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
