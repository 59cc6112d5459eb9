"""From operators to stages: which programs a run has, and how origins are kept.

Where branches of one stream are joined, rows follow each other as in a run row by row: for each
row of that stream, what the branches made of it, branch by branch. So rows carry their origins
there: the numbers of the rows that they come from. A stage that numbers rows stands where branches
part, and the join forgets the numbers; elsewhere there are none, and they cost nothing.

The branches of a join part at its immediate dominator: the last place that all ways to the join
lead through. Regions between such a place and its join lie in each other or apart, so the origins
of a row are a stack: a place within the region of another numbers on top of it. Streams from
different entries have rows in the same round only at the end, so they need no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, cast

from callboard.streams._keyed import Lots
from callboard.streams._program import Program
from callboard.streams._sinks import Collect
from callboard.streams._stateless import Number
from callboard.streams.errors import GraphError
from callboard.streams.operator import Operator

# A spot in the graph: an output of an operator, an operator, or None: where all rows come from.
Output = tuple[Operator, int]
Spot = Output | Operator | None

# A position in a batch takes so many bits of an origin.
_BITS = 32


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
        """Close the programs."""
        for node in self.nodes:
            node.program.close()


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


@dataclass(frozen=True, eq=False)
class Stage:
    """What a run has a program for, or an entry.

    `sources` says whose batches are its inputs, as (index of the stage, port).
    """

    index: int
    name: str
    kind: str
    ports: tuple[str, ...]
    sources: tuple[tuple[int, int], ...]
    make: Callable[[], Program] | None = field(repr=False)


def stages_of(operators: Sequence[Operator], names: Mapping[Operator, str]) -> tuple[Stage, ...]:
    """List the stages, each after its sources. Raises GraphError."""
    return _Planner(operators, names).stages()


class _Planner:
    def __init__(self, operators: Sequence[Operator], names: Mapping[Operator, str]) -> None:
        self.operators = operators
        self.names = names
        self.parting = _where_branches_part(operators)
        self.ahead = _joins_ahead(operators, set(self.parting))
        self.made: list[Stage] = []
        self.stage_of: dict[Operator, Stage] = {}
        self.numbered: dict[Output, Stage] = {}
        self.stacks: dict[Stage, tuple[Spot, ...]] = {}

    def stages(self) -> tuple[Stage, ...]:
        for operator in self.operators:
            self.add(operator)
        return tuple(self.made)

    def add(self, operator: Operator) -> None:
        sources = [self.source(each._operator, each._port, operator) for each in operator.inputs]
        stacks = [self.stacks[stage] for stage, _ in sources]
        common = _common_prefix(stacks)
        left = common
        if operator.joins:
            ahead = self.ahead[operator] - {operator}
            while left and not any(self.parting[join] == left[-1] for join in ahead):
                left = left[:-1]
        make = None
        if operator.program is not None:
            levels = self.levels(operator, stacks, common, left)
            make = partial(operator.make, self.names[operator], *levels)
            if common and _in_lots(operator):
                make = partial(make, by_row=True)
                self.check_by_row(operator)
        stage = self.new_stage(self.names[operator], operator, sources, make)
        self.stage_of[operator] = stage
        self.stacks[stage] = left

    def levels(
        self,
        operator: Operator,
        stacks: list[tuple[Spot, ...]],
        common: tuple[Spot, ...],
        left: tuple[Spot, ...],
    ) -> tuple[object, ...]:
        """Work out what programs with several inputs take first: see _merge.pyx."""
        if not operator.joins:
            return ()
        drops = [_BITS * (len(stack) - len(common)) for stack in stacks]
        return drops, _BITS * (len(common) - len(left)) if left else None

    def source(self, operator: Operator, port: int, reader: Operator) -> tuple[Stage, int]:
        """Find the stage that an operator reads an output from, numbering its rows if need be."""
        output = operator, port
        place = _place(output)
        if not any(self.parting[join] == place for join in self.ahead[reader]):
            return self.stage_of[operator], port
        if output not in self.numbered:
            source = self.stage_of[operator]
            name = f"{self.names[operator]}, numbered"
            stage = self.new_stage(name, None, [(source, port)], partial(Number, name))
            self.stacks[stage] = (*self.stacks[source], place)
            self.numbered[output] = stage
        return self.numbered[output], 0

    def check_by_row(self, operator: Operator) -> None:
        if operator.program_by_row is None:
            joins = self.ahead[operator] & set(self.parting)
            join = next(self.names[each] for each in self.operators if each in joins)
            raise GraphError(
                f"{self.names[operator]!r} is handed many rows at once, and its outputs meet those "
                f"of others row by row at {join!r}: an operator with receive() can do that"
            )

    def new_stage(
        self,
        name: str,
        operator: Operator | None,
        sources: list[tuple[Stage, int]],
        make: Callable[[], Program] | None,
    ) -> Stage:
        kind, ports = (operator.kind, operator.ports) if operator else ("number", ("out",))
        indices = tuple((stage.index, port) for stage, port in sources)
        stage = Stage(len(self.made), name, kind, ports, indices, make)
        self.made.append(stage)
        return stage


def _in_lots(operator: Operator) -> bool:
    return operator.program is Lots or operator.kind == "native"


def _place(output: Output) -> Spot:
    """Say where the rows of an output are numbered: those of entries all in one, as they arrive."""
    return None if output[0].kind == "entry" else output


def _common_prefix(stacks: list[tuple[Spot, ...]]) -> tuple[Spot, ...]:
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*stacks, strict=False))
    return tuple(level[0] for level in levels)


def _where_branches_part(operators: Sequence[Operator]) -> dict[Operator, Spot]:
    """Find, for each join that needs origins, the output where its branches part."""
    above: dict[Spot, Spot] = {}  # the immediate dominator (Cooper, Harvey, Kennedy 2001)
    depths: dict[Spot, int] = {None: 0}
    entries: dict[Operator, set[Operator]] = {}
    parting: dict[Operator, Spot] = {}

    def hang(place: Spot, below: Spot) -> None:
        above[place] = below
        depths[place] = depths[below] + 1

    for operator in operators:
        inputs: list[Spot] = [(each._operator, each._port) for each in operator.inputs]
        meeting = inputs[0] if inputs else None
        for other in inputs[1:]:
            while meeting != other:
                if depths[meeting] < depths[other]:
                    other = above[other]
                else:
                    meeting = above[meeting]
        hang(operator, meeting)
        for port in range(len(operator.ports)):
            hang((operator, port), operator)
        origins = [entries[each._operator] for each in operator.inputs]
        entries[operator] = set().union(*origins) or {operator}
        if operator.joins and sum(map(len, origins)) > len(entries[operator]):
            while isinstance(meeting, Operator):  # they part on several outputs of one operator
                meeting = above[meeting]
            parting[operator] = meeting and _place(meeting)
    return parting


def _joins_ahead(
    operators: Sequence[Operator], joins: set[Operator]
) -> dict[Operator, frozenset[Operator]]:
    """For each operator, the joins that its outputs come to, and itself if it is one."""
    ahead: dict[Operator, frozenset[Operator]] = {}
    readers: dict[Operator, list[Operator]] = {operator: [] for operator in operators}
    for operator in reversed(operators):
        own = frozenset({operator} & joins)
        ahead[operator] = own.union(*(ahead[reader] for reader in readers[operator]))
        for each in operator.inputs:
            readers[each._operator].append(operator)
    return ahead
