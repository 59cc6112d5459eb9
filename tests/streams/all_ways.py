"""Run a graph in all ways: in sequence, under seeds, and on workers."""

from __future__ import annotations

from typing import Any

from callboard import ActorSystem
from callboard.streams import Stream
from callboard.testing import ManualSystem


def itself(row: Any) -> Any:
    return row


def first(row: Any) -> Any:
    return row[0]


def second(row: Any) -> Any:
    return row[1]


def run(stream: Stream[Any], rows: list[Any] | dict[str, list[Any]]) -> list[Any]:
    """Run a graph in all ways, and check that they give the same."""
    graph = stream.collect()
    inputs = rows if isinstance(rows, dict) else {graph.entries[0]: rows}
    expected: list[Any] = graph.run_sequentially(inputs)
    systems = [ManualSystem(seed) for seed in range(3)]
    for system in (*systems, ActorSystem(workers=3)):
        with system:
            running = system.run(graph, batch_size=2)
            for name, arriving in inputs.items():
                running.send(name, arriving)
            assert running.finish() == expected
    return expected
