"""Where branches of a stream part that are joined again.

The branches of a join part at its immediate dominator: the last place that all ways to the join
lead through. Regions between such a place and its join lie in each other or apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from callboard.streams.planning.operator import Operator, Place

# A spot in the graph: an output of an operator, an operator, or None: where all rows come from.
Spot = Place | Operator | None


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
        for number, place in enumerate(operator.inputs):
            other: Spot = place
            meeting = other if number == 0 else meeting
            while meeting != other:
                if depths[meeting] < depths[other]:
                    other = above[other]
                else:
                    meeting = above[meeting]
        hang(operator, meeting)
        for port in range(len(operator.ports)):
            hang(Place(operator, port), operator)
        origins = [entries[place.operator] for place in operator.inputs]
        entries[operator] = set().union(*origins) or {operator}
        if operator.joins and sum(map(len, origins)) > len(entries[operator]):
            while isinstance(meeting, Operator):  # they part on several outputs of one operator
                meeting = above[meeting]
            parting[operator] = meeting and numbering_spot(meeting)
    return parting


def numbering_spot(place: Place) -> Spot:
    """Say where the rows of a place are numbered: those of entries all in one, as they arrive."""
    return None if place.operator.kind == "entry" else place


def joins_ahead(
    operators: Sequence[Operator], joins: Iterable[Operator]
) -> dict[Operator, frozenset[Operator]]:
    """Find the joins that an operator's outputs come to, and itself if it is one."""
    ahead = {operator: frozenset[Operator]() for operator in operators}
    ahead |= {join: frozenset({join}) for join in joins}
    for operator in reversed(operators):
        for place in operator.inputs:
            ahead[place.operator] |= ahead[operator]
    return ahead
