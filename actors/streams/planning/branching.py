"""Where branches of a stream part that are joined again.

The branches of a join part at its immediate dominator: the last place that all ways to the join
lead through. Regions between such a place and its join lie in each other or apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callboard.streams.planning.operator import Operator, Outlet

# A spot in the graph: an output of an operator, an operator, or None: where all rows come from.
Spot = Outlet | Operator | None


def where_branches_part(operators: Sequence[Operator]) -> dict[Operator, Spot]:
    """Find the output where the branches part, for each join of branches.

    Streams from different entries have rows in the same round only at the end, so a join of such
    streams alone is none of branches.
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
    """Say where the rows of an outlet are numbered: those of entries all in one, as they arrive."""
    return None if outlet.operator.kind == "entry" else outlet


def spots_ahead(
    operators: Sequence[Operator], parting: Mapping[Operator, Spot]
) -> dict[Operator, frozenset[Spot]]:
    """Find the spots whose branches meet after an operator: where those of a join part that its
    outputs come to.

    Above a spot nobody asks for it, so a set has as many as regions lie in each other there.
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
