"""A run on one thread, in plain order: what every other run is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from callboard.streams._program import Batch, Program
from callboard.streams._sinks import Collect
from callboard.streams.checks import check_count
from callboard.streams.errors import GraphError, StreamError
from callboard.streams.plan import Stage
from callboard.streams.tally import Tally

if TYPE_CHECKING:
    from callboard.streams.graph import Graph

Inputs = Mapping[str, Iterable[Any]] | Iterable[tuple[str, Iterable[Any]]]


def run(graph: Graph[Any], inputs: Inputs, batch_size: int, tally: Tally) -> dict[str, list[Any]]:
    """Run a graph, and return what its collectors have."""
    check_count("batch_size", batch_size)
    programs: dict[Stage, Program] = {}
    try:
        for stage in graph.stages:
            if stage.make is not None:
                programs[stage] = stage.make()
                programs[stage].context = tally
        sequential = _Run(graph.stages, programs)
        for name, rows in rounds(graph, inputs, batch_size):
            sequential.round(name, rows)
        sequential.round(None, [])
    finally:
        for program in programs.values():
            program.close()
    return {
        stage.name: program.collected
        for stage, program in programs.items()
        if isinstance(program, Collect)
    }


def rounds(graph: Graph[Any], inputs: Inputs, batch_size: int) -> Iterator[tuple[str, list[Any]]]:
    """Cut the rows for each entry into batches."""
    for name, rows in inputs.items() if isinstance(inputs, Mapping) else inputs:
        if name not in graph.entries:
            has = ", ".join(map(repr, graph.entries))
            raise GraphError(f"the graph has no entry {name!r}: it has {has}")
        left = iter(rows)
        while batch := list(islice(left, batch_size)):
            yield name, batch


class _Run:
    def __init__(self, stages: tuple[Stage, ...], programs: dict[Stage, Program]) -> None:
        self.stages = stages
        self.programs = programs
        self.passed = {stage: [0] * len(stage.ports) for stage in stages}

    def round(self, name: str | None, rows: list[Any]) -> None:
        """Take a batch for an entry through the graph; or, for None, the end of the stream."""
        outputs: list[list[Batch]] = []
        error: StreamError | None = None
        for stage in self.stages:
            if stage.is_entry:
                into = [Batch(rows if stage.name == name else [], final=name is None)]
            else:
                batches = [outputs[source][port] for source, port in stage.sources]
                into = [batches[0].follower() for _ in stage.ports]
                try:
                    self.work(self.programs[stage], batches, into)
                except StreamError as raised:
                    error = raised
                    for batch in into:  # what comes after goes on to the failure, but not to the end
                        batch.final = False
            self.count(stage, into)
            outputs.append(into)
        if error is not None:
            raise error

    def work(self, program: Program, batches: list[Batch], into: list[Batch]) -> None:
        if len(batches) == 1:
            program.process(batches[0], into)
        else:
            program.process_many(batches, into)

    def count(self, stage: Stage, into: list[Batch]) -> None:
        for port, batch in enumerate(into):
            batch.first = self.passed[stage][port]
            self.passed[stage][port] += len(batch)
