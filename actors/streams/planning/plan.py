"""What one run of a graph has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from callboard.core.log import log
from callboard.streams.planning.stages import Stage
from callboard.streams.programs.program import Program
from callboard.streams.programs.sinks import Collect


@dataclass(frozen=True)
class Node:
    """A program of a run, and where its inputs come from.

    Each of `sources` is (number of a node, port), or (None, number of an entry).
    """

    name: str
    program: Program
    sources: tuple[tuple[int | None, int], ...]


@dataclass(frozen=True)
class Plan:
    """What one run of a graph has: its own programs, each after those that it has its rows from."""

    nodes: list[Node]
    entries: list[str]

    def result(self) -> Any:
        """Make the run's result of what its collectors have."""
        found = [node for node in self.nodes if isinstance(node.program, Collect)]
        collected = {node.name: cast("Collect", node.program).collected for node in found}
        if len(collected) == 1:
            return next(iter(collected.values()))
        return collected or None

    def close(self) -> None:
        """Close the programs. What they raise is logged: it is not the run's result."""
        for node in self.nodes:
            try:
                node.program.close()
            except Exception as error:
                log.error("an operator failed to close", operator=node.name, exc_info=error)


def plan_of(stages: Sequence[Stage]) -> Plan:
    """Make the programs of one run."""
    plan = Plan([], [])
    places: list[tuple[int | None, int]] = []  # of each stage
    try:
        for stage in stages:
            if stage.make is None:
                places.append((None, len(plan.entries)))
                plan.entries.append(stage.name)
            else:
                sources = [_source(places[index], port) for index, port in stage.sources]
                places.append((len(plan.nodes), 0))
                plan.nodes.append(Node(stage.name, stage.make(), tuple(sources)))
    except BaseException:
        plan.close()
        raise
    return plan


def _source(place: tuple[int | None, int], port: int) -> tuple[int | None, int]:
    return place if place[0] is None else (place[0], port)
