"""From operators to stages: what a run makes programs of, and how origins are kept.

Where branches of one stream are joined, rows follow each other as in a run row by row: for each
row of that stream, what the branches made of it, branch by branch. So rows carry their origins
there: the numbers of the rows that they come from. A stage that numbers rows stands where branches
part, and the join forgets the numbers; elsewhere there are none, and they cost nothing. Within a
region between such a place and its join another may lie, so the origins of a row are a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile

from callboard.streams.errors import GraphError
from callboard.streams.planning.branching import (
    Output,
    Spot,
    joins_ahead,
    numbering_spot,
    where_branches_part,
)
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.keyed import Lots
from callboard.streams.programs.program import Program
from callboard.streams.programs.stateless import Number

# The spots where a row's origins were given, from the outermost region to the innermost.
Stack = tuple[Spot, ...]

# A position in a batch takes so many bits of an origin.
_BITS = 32


@dataclass(frozen=True, eq=False)
class Stage:
    """What a run makes a program of; or an entry, for which there is none to make.

    `sources` says whose batches are its inputs, as (index of the stage, port).
    """

    index: int
    name: str
    sources: tuple[tuple[int, int], ...]
    make: Callable[[], Program] | None = field(repr=False)


def stages_of(operators: Sequence[Operator], names: Mapping[Operator, str]) -> tuple[Stage, ...]:
    """List the stages, each after its sources. Raises GraphError."""
    return _Planner(operators, names).stages()


class _Planner:
    def __init__(self, operators: Sequence[Operator], names: Mapping[Operator, str]) -> None:
        self.operators = operators
        self.names = names
        self.parting = where_branches_part(operators)
        self.ahead = joins_ahead(operators, self.parting)
        self.made: list[Stage] = []
        self.stage_of: dict[Operator, Stage] = {}
        self.numbered: dict[Output, Stage] = {}
        self.stacks: dict[Stage, Stack] = {}

    def stages(self) -> tuple[Stage, ...]:
        for operator in self.operators:
            self.add(operator)
        return tuple(self.made)

    def add(self, operator: Operator) -> None:
        sources = [self.source(each._operator, each._port, operator) for each in operator.inputs]
        stacks = [self.stacks[stage] for stage, _ in sources]
        common = left = _common_prefix(stacks)
        levels: tuple[object, ...] = ()
        if operator.joins:
            while left and not self.needs(operator, left[-1:]):
                left = left[:-1]
            drops = [_BITS * (len(stack) - len(common)) for stack in stacks]
            levels = drops, _BITS * (len(common) - len(left)) if left else None
        make = None
        if operator.program is not None:
            by_row = self.needs(operator, common) and self.only_by_row(operator)
            make = partial(operator.make, self.names[operator], *levels, by_row=by_row)
        stage = self.new_stage(self.names[operator], sources, make)
        self.stage_of[operator] = stage
        self.stacks[stage] = left

    def needs(self, operator: Operator, stack: Stack) -> bool:
        """Whether a join after an operator needs what one of some spots numbers."""
        return any(self.parting[join] in stack for join in self.ahead[operator] - {operator})

    def source(self, operator: Operator, port: int, reader: Operator) -> tuple[Stage, int]:
        """Find the stage that an operator reads an output from, numbering its rows if need be."""
        output = operator, port
        spot = numbering_spot(output)
        if not any(self.parting[join] == spot for join in self.ahead[reader]):
            return self.stage_of[operator], port
        if output not in self.numbered:
            source = self.stage_of[operator]
            name = f"{self.names[operator]}, numbered"
            stage = self.new_stage(name, [(source, port)], partial(Number, name))
            self.stacks[stage] = (*self.stacks[source], spot)
            self.numbered[output] = stage
        return self.numbered[output], 0

    def only_by_row(self, operator: Operator) -> bool:
        """Whether an operator is handed many rows at once, but here not. Raises GraphError."""
        if operator.program is not Lots and operator.kind != "native":
            return False
        if operator.program_by_row is None:
            joins = self.ahead[operator]
            join = next(self.names[each] for each in self.operators if each in joins)
            raise GraphError(
                f"{self.names[operator]!r} is handed many rows at once, and its outputs meet those "
                f"of others row by row at {join!r}: an operator with receive() can do that"
            )
        return True

    def new_stage(
        self,
        name: str,
        sources: list[tuple[Stage, int]],
        make: Callable[[], Program] | None,
    ) -> Stage:
        indices = tuple((stage.index, port) for stage, port in sources)
        stage = Stage(len(self.made), name, indices, make)
        self.made.append(stage)
        return stage


def _common_prefix(stacks: list[Stack]) -> Stack:
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*stacks, strict=False))
    return tuple(level[0] for level in levels)
