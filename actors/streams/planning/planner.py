"""Plans a graph: orders its operators, and decides where rows carry their lineage.

Where branches of one stream are joined, rows follow each other as in a run row by row: for each row
of that stream the branches' outputs, branch by branch. So rows carry their lineage there: the
numbers of the rows that they come from. The planner adds an operator that numbers rows where
branches part, and the join drops the numbers; elsewhere there are none, and they cost nothing. The
region between such a place and its join may contain others, so the lineage of a row is a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.plan import Plan, PlannedOperator, Source
from callboard.streams.programs.joins.join_in_lanes import JoinLanes
from callboard.streams.programs.joins.join_index import PairIndex
from callboard.streams.programs.joins.lanes_in_processes import ProcessLane
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.answers import Answers
from callboard.streams.programs.rows.keyed import Chunks, Objects, Scan, Timed
from callboard.streams.programs.rows.stateless import Branch, Filter, FlatMap, Map, Number
from callboard.streams.programs.windows.event_time import Sessions

# A spot in the graph: an output of an operator, an operator, or None: where all rows come from.
Spot = Outlet | Operator | None


def where_branches_part(operators: Sequence[Operator]) -> dict[Operator, Spot]:
    """Find the output where the branches part, for each join of branches.

    Streams from different entries have rows in the same round only at the end, so a join of these
    alone does not join branches.
    """
    above: dict[Spot, Spot] = {}  # the immediate dominator (Cooper, Harvey, Kennedy 2001)
    depths: dict[Spot, int] = {None: 0}
    entries: dict[Operator, set[Operator]] = {}
    parting: dict[Operator, Spot] = {}

    def hang(spot: Spot, below: Spot) -> None:
        above[spot] = below
        depths[spot] = depths[below] + 1

    for operator in operators:
        meeting: Spot = None
        for number, outlet in enumerate(operator.inputs):
            other: Spot = outlet
            meeting = other if number == 0 else meeting
            while meeting != other:
                if depths[meeting] < depths[other]:
                    other = above[other]
                else:
                    meeting = above[meeting]
        hang(operator, meeting)
        for port in range(len(operator.ports)):
            hang(Outlet(operator, port), operator)
        sources = [entries[outlet.operator] for outlet in operator.inputs]
        entries[operator] = set().union(*sources) or {operator}
        if operator.joins and sum(map(len, sources)) > len(entries[operator]):
            while isinstance(meeting, Operator):  # they part on several outputs of one operator
                meeting = above[meeting]
            parting[operator] = meeting and numbering_spot(meeting)
    return parting


def numbering_spot(outlet: Outlet) -> Spot:
    """Return where the rows of an outlet are numbered: all entries' together, as they arrive."""
    return None if outlet.operator.kind == "entry" else outlet


def spots_ahead(
    operators: Sequence[Operator], parting: Mapping[Operator, Spot]
) -> dict[Operator, frozenset[Spot]]:
    """Find the spots whose branches meet after an operator, in a join that its outputs come to.

    Above a spot nothing asks for it, so the size of a set is the number of nested regions there.
    """
    ahead = {operator: frozenset[Spot]() for operator in operators}
    for operator in reversed(operators):
        spots = ahead[operator]
        if operator in parting:
            spots |= {parting[operator]}
        for outlet in operator.inputs:
            above = ahead[outlet.operator]
            if not spots <= above:
                ahead[outlet.operator] = above | {
                    spot
                    for spot in spots
                    if not (isinstance(spot, Outlet) and spot.operator is outlet.operator)
                }
    return ahead


# The spots where a row's lineage was noted, from the outermost region to the innermost.
Spots = tuple[Spot, ...]

# The bits of a lineage that a position in a batch takes.
_BITS = 32

# Programs that may run in a worker process, and operators of these that call no function.
_PORTABLE = (Map, Filter, FlatMap, Branch, Objects, Chunks, Scan, Timed, Sessions)
_WITHOUT_FUNCTIONS = ("batch",)


def portable(operator: Operator, name: str, by_row: bool) -> partial[Program] | None:
    """Return what makes an operator's program in a worker process; None if it stays here.

    Operators may go that call functions in Python, which hold the interpreter's lock.
    """
    make = operator.program_by_row if by_row else operator.program
    if not isinstance(make, partial) or operator.releases_gil or operator.max_workers is not None:
        return None
    if make.func not in _PORTABLE or operator.kind in _WITHOUT_FUNCTIONS:
        return None
    if make.func in (Objects, Chunks) and not isinstance(make.keywords["make"], partial):
        return None  # the object is the program's own
    return partial(make, name, ports=operator.ports, errors=operator.errors)


def portable_lane(operator: Operator, program: Any, name: str) -> partial[Program] | None:
    """Return what makes a lane of a join in a worker process; None if the lanes stay here.

    Those may go that call a function in Python for each pair. But where one partner is enough, the
    rows that have one are known here, and most pairs are not compared.
    """
    if operator.max_workers is not None or program.func is not JoinLanes:
        return None
    index = program.keywords["index"]
    if index.func is not PairIndex or index.keywords["test"] is None or index.keywords["once"]:
        return None
    make: Callable[..., Program] = ProcessLane
    return partial(make, name, index=index, ports=("out",))


def why_not_portable(operator: Operator) -> str:
    """Say why an operator runs in no worker process."""
    make = operator.program
    if operator.releases_gil:
        return "it releases the interpreter's lock"
    if operator.max_workers is not None:
        return "max_workers() limits it"
    if isinstance(make, partial) and make.func in (Objects, Chunks):
        return "its object is the program's own"
    if isinstance(make, partial) and make.func is Answers:
        return "it waits for answers"
    return f"operators of the kind {operator.kind!r} stay in the program"


def plan_of(operators: Sequence[Operator], names: Mapping[Operator, str]) -> Plan:
    """Make the plan of operators, each of which comes after its inputs. Raises GraphError."""
    return _Planner(operators, names).plan()


class _Planner:
    def __init__(self, operators: Sequence[Operator], names: Mapping[Operator, str]) -> None:
        self.operators = operators
        self.names = names
        self.parting = where_branches_part(operators)
        self.ahead = spots_ahead(operators, self.parting)
        self.entries: list[str] = []
        self.planned: list[PlannedOperator] = []
        self.sources: dict[Outlet, Source] = {}
        self.numbered: dict[Outlet, Source] = {}
        self.stacks: dict[Source, Spots] = {}

    def plan(self) -> Plan:
        for operator in self.operators:
            if operator.program is None:
                self.add_entry(operator)
            else:
                self.add(operator)
        return Plan(tuple(self.entries), tuple(self.planned))

    def add_entry(self, operator: Operator) -> None:
        source = self.sources[Outlet(operator)] = None, len(self.entries)
        self.stacks[source] = ()
        self.entries.append(self.names[operator])

    def add(self, operator: Operator) -> None:
        sources = [self.source(outlet, operator) for outlet in operator.inputs]
        stacks = [self.stacks[source] for source in sources]
        common = left = _common_prefix(stacks)
        lineage: tuple[object, ...] = ()
        if operator.joins:
            while left and not self.needs(operator, left[-1:]):
                left = left[:-1]
            drops = [_BITS * (len(stack) - len(common)) for stack in stacks]
            lineage = drops, _BITS * (len(common) - len(left)) if left else None
        by_row = self.needs(operator, common) and self.only_by_row(operator)
        name = self.names[operator]
        kind, detail = operator.kind, operator.detail
        limits = operator.constraint, operator.max_workers
        read = tuple(sources)
        for at, (what, program) in enumerate(operator.ahead):
            part = f"{name}, {what}"
            make_part = partial(program, part, *(lineage if at == 0 else ()))
            lane = portable_lane(operator, program, part)
            ahead = PlannedOperator(
                part,
                make_part,
                read,
                *limits,
                kind=kind,
                detail=detail,
                has_state=lane is not None,
                portable=lane,
                stays="" if lane else why_not_portable(operator),
            )
            read = ((self.add_planned(ahead), 0),)
        planned = PlannedOperator(
            name,
            partial(operator.make, name, *lineage, by_row=by_row),
            read,
            *limits,
            waits=operator.waits,
            kind=kind,
            detail=detail,
            is_keyed=operator.is_keyed,
            has_state=operator.stateful,
            portable=portable(operator, name, by_row),
        )
        if planned.portable is None:
            planned = replace(planned, stays=why_not_portable(operator))
        number = self.add_planned(planned)
        for port in range(len(operator.ports)):
            self.sources[Outlet(operator, port)] = number, port
            self.stacks[number, port] = left

    def needs(self, operator: Operator, stack: Spots) -> bool:
        """Return whether a join after an operator needs what one of some spots numbers."""
        return not self.ahead[operator].isdisjoint(stack)

    def source(self, outlet: Outlet, reader: Operator) -> Source:
        """Find where an operator reads the rows of an outlet, numbering them if need be."""
        spot = numbering_spot(outlet)
        meets_here = reader in self.parting and self.parting[reader] == spot
        if not meets_here and spot not in self.ahead[reader]:
            return self.sources[outlet]
        if outlet not in self.numbered:
            source = self.sources[outlet]
            name = f"{self.names[outlet.operator]}, numbered"
            planned = PlannedOperator(name, partial(Number, name), (source,), numbers=True)
            numbered = self.numbered[outlet] = self.add_planned(planned), 0
            self.stacks[numbered] = (*self.stacks[source], spot)
        return self.numbered[outlet]

    def only_by_row(self, operator: Operator) -> bool:
        """Return whether a batch operator works row by row here. Raises GraphError if it cannot."""
        if operator.in_chunks and operator.program_by_row is None:
            join = self.names[self.next_join(operator)]
            raise GraphError(
                f"{self.names[operator]!r} receives many rows at once, but its outputs are merged "
                f"with others row by row at {join!r}: use an operator with receive()"
            )
        return operator.in_chunks

    def next_join(self, operator: Operator) -> Operator:
        """Find the first join of branches that an operator's outputs come to."""
        below = {operator}
        for each in self.operators:
            if not below.isdisjoint(outlet.operator for outlet in each.inputs):
                below.add(each)
            if each in below and each in self.parting:
                return each
        raise AssertionError(f"no join after {operator!r}")

    def add_planned(self, planned: PlannedOperator) -> int:
        self.planned.append(planned)
        return len(self.planned) - 1


def _common_prefix(stacks: list[Spots]) -> Spots:
    equal = takewhile(lambda spots: len(set(spots)) == 1, zip(*stacks, strict=False))
    return tuple(spots[0] for spots in equal)
