"""Runs that are cut: each part resumes, in a new system, from the snapshot of the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, Snapshot
from tests.streams.functions import Refused

TYPES = [Refused]

Arriving = list[tuple[str, list[Any]]]
SystemOf = Callable[[int], ActorSystem]


def run_in_parts(
    graph: Graph[Any],
    inputs: Arriving,
    cuts: Sequence[int],
    system_of: SystemOf,
    options: Sequence[dict[str, Any]],
) -> Any:
    """Send rows, with a cut behind each of so many; return the result of the last part."""
    rows = [(name, row) for name, arriving in inputs for row in arriving]
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    saved: Snapshot | None = None
    for part, (begin, end) in enumerate(pairwise(places)):
        came = dict.fromkeys(graph.entries, 0) | Counter(name for name, _ in rows[:end])
        with system_of(part) as system:
            run = system.run(graph, restore=saved, **options[part % len(options)])
            for name, some in groupby(rows[begin:end], key=lambda each: each[0]):
                run.send(name, [row for _, row in some], timeout=60)
            assert run.position == came
            if part == len(cuts):
                return run.finish(timeout=60)
            snapshot = run.snapshot(TYPES, timeout=60)
            assert snapshot.position == came
            saved = Snapshot.from_bytes(snapshot.to_bytes(), TYPES)
            run.cancel()
    raise AssertionError("the last part returns")
