"""Ordered streams: operators that run on many workers and answer as if on one.

`entry()` begins a stream, its methods add operators, and a sink makes a graph of it, which runs.

The layers, each importing only those before it: `errors` and `checks`; the programs, which are what
operators do (`_program`, `_stateless`, `_stateful`, `_keyed`, `_merge`, `_sinks`, `windows`,
`_clock`, `_states`, `files`, `arrow`); what makes them run: `batches`, `operator`, `branching`,
`stages`, `plan`, `sequential`; what shows them: `draw`, `picture`; `graph`; what users chain:
`place`, `recipes`, `rowwise`, `with_state`, `keyed`, `joins`, `ends` and `stream`; and runs in
actor systems: `_flow`, `lanes` and `run`.
"""

from callboard.scheduling.flow.heuristics import Heuristic
from callboard.streams.chaining.keyed import KeyedStream
from callboard.streams.chaining.protocols import Receives, ReceivesMany
from callboard.streams.chaining.stream import Stream, entry
from callboard.streams.errors import (
    Failure,
    GraphError,
    RunEnded,
    RunError,
    RunTimeout,
    StreamError,
)
from callboard.streams.planning.graph import Graph
from callboard.streams.programs.program import Side, Watermark
from callboard.streams.programs.tally import Tally
from callboard.streams.programs.windows import Session, Sliding, Tumbling, Window
from callboard.streams.running.run import Run

__all__ = [
    "Failure",
    "Graph",
    "GraphError",
    "Heuristic",
    "KeyedStream",
    "Receives",
    "ReceivesMany",
    "Run",
    "RunEnded",
    "RunError",
    "RunTimeout",
    "Session",
    "Side",
    "Sliding",
    "Stream",
    "StreamError",
    "Tally",
    "Tumbling",
    "Watermark",
    "Window",
    "entry",
]
