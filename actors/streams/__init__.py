"""Ordered streams: operators run on many workers, with the same outputs as on one.

`entry()` begins a stream, its methods add operators, and a sink makes a graph of it, which runs.

The modules, none of which imports a later one:

`errors`, `checks`   errors, and checks of arguments
`programs`           the work of a run on batches of rows, a class for each kind of operator:
                     `rows`, `windows`, `merging`, `columns`, `joins`
`native`             native operators, from which users derive, and their program
`planning`           operators as requested, and the plan of a graph of them
`operators`          operators made by several methods, and those of users' classes
`drawing`            drawings of graphs
`snapshots`          the states of runs, to files and back
`processes`          stateless operators in worker processes
`running`            running plans, in an actor system or on the calling thread
`chaining`           streams, whose methods add operators, and graphs

An actor system does not depend on them: `ActorSystem.run` calls the graph that it gets.
"""

from callboard.scheduling.flow.heuristics import Heuristic
from callboard.streams.chaining.graph import Graph
from callboard.streams.chaining.keyed import KeyedStream
from callboard.streams.chaining.protocols import BatchHandler, RowHandler
from callboard.streams.chaining.stream import Stream, entry
from callboard.streams.errors import (
    FailedRow,
    GraphError,
    ProcessLost,
    RunEnded,
    RunError,
    RunTimeout,
    SnapshotError,
    StreamError,
)
from callboard.streams.experiments.what_if import WhatIf
from callboard.streams.programs.columns.rows_and_batches import batches
from callboard.streams.programs.joins.predicates import Band, Equal, Predicate
from callboard.streams.programs.program import SideOutput, Watermark
from callboard.streams.programs.windows.window import (
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
)
from callboard.streams.running.results import Results
from callboard.streams.running.row_counts import RowCounts
from callboard.streams.running.run import Run
from callboard.streams.snapshots.directory import SnapshotStore
from callboard.streams.snapshots.snapshot import Snapshot

__all__ = [
    "Band",
    "BatchHandler",
    "Equal",
    "FailedRow",
    "Graph",
    "GraphError",
    "Heuristic",
    "KeyedStream",
    "Predicate",
    "ProcessLost",
    "Results",
    "RowCounts",
    "RowHandler",
    "Run",
    "RunEnded",
    "RunError",
    "RunTimeout",
    "SessionWindow",
    "SideOutput",
    "SlidingWindow",
    "Snapshot",
    "SnapshotError",
    "SnapshotStore",
    "Stream",
    "StreamError",
    "TumblingWindow",
    "Watermark",
    "WhatIf",
    "Window",
    "batches",
    "entry",
]
