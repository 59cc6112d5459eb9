"""The options of each of the partition functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from callboard.spark.tasks.counters import TaskCounters
from callboard.spark.tasks.settings import Workers


@dataclass(frozen=True)
class PartitionOptions:
    """The options of all partition functions.

    `entry` names the entry point where `build` returns several. It is given at most `in_flight`
    batches that it has not answered, which bounds the memory that waiting batches take. With
    `flush` it is asked `PartitionEnd` after the last batch.

    `lifetime="task"` builds the graph anew for each task, so each begins with fresh actors.
    `"process"` keeps it for the next task of the same worker process that has the same build
    function. The entry point is then asked `PartitionStart` before the first batch of each. The
    actors themselves must then forget the last partition.

    `workers` is the number of the actor system's worker threads: the task's CPUs unless given. An
    elastic number, "elastic" or a range, is never above the task's CPUs.
    `config` is the system's configuration: a dict, or the path of a TOML file, which the driver
    reads. One batch may take `drain_timeout` seconds, and draining at the end as many.

    `counters` count what the tasks do, for the driver: see `TaskCounters`.
    """

    entry: str | None
    in_flight: int
    flush: bool
    lifetime: Literal["task", "process"]
    workers: Workers | None
    drain_timeout: float
    config: Any
    counters: TaskCounters | None = None
