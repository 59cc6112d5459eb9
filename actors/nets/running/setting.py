"""All that a run of a net needs below its actors: nodes, entities, and the carrier."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from callboard.nets.kernel.building import Builder, parts_within, runs_elsewhere
from callboard.nets.kernel.calls import CalledBoxNode
from callboard.nets.kernel.carrier import Carrier, NetNode, begin
from callboard.nets.kernel.nodes import BoxNode
from callboard.nets.kernel.planning import Planner, names_of
from callboard.nets.kernel.record import Assembler, Shapes
from callboard.nets.running.messages import NetStatistics
from callboard.nets.terms.network import Box
from callboard.nets.types.leaves import labels_mentioned
from callboard.nets.types.typed import Typed


class Setting:
    """A net's nodes and entities, and their carrier."""

    def __init__(self, typed: Typed) -> None:
        parts = parts_within(typed.net)
        self.shapes = Shapes()
        self.carrier = Carrier(self.shapes)
        names = names_of([sorted(frozenset().union(*map(labels_mentioned, parts)))])
        is_alone = not any(isinstance(part, Box) and runs_elsewhere(part) for part in parts)
        self._builder = Builder(Planner(self.shapes, names), is_alone=is_alone)
        node = self._builder.node(typed)
        self.carrier.uses_tickets = not is_alone
        self.carrier.first = begin(node)
        self.entry = Assembler(self.shapes, names, None, frozenset(), None, "send()")
        self._begins_by_itself = typed.is_initialiser
        self.nodes = self._builder.nodes
        self.seen = NetStatistics()
        self.on_end: Callable[[], object] = lambda: None
        """Is called by the run's actor at its end, after which no figure changes."""

    def begin(self) -> None:
        """Have initialisers run that are there from the start."""
        self._builder.unstarted.start(self.carrier)
        if self._begins_by_itself:
            self.carrier.start(self.shapes.of_labels(frozenset()))


def seen_at(nodes: Iterable[NetNode]) -> dict[str, dict[str, Any]]:
    """Say of each place in a net what came there, its entities, and the times of boxes."""
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        place = found.setdefault(node.path, {"records": 0, "entities": 0, "made": 0})
        place["records"] += node.passed
        place["entities"] += node.alive
        place["made"] += node.made
        if isinstance(node, (BoxNode, CalledBoxNode)):
            place["waiting"] = node.waiting
            place["calls"] = node.calls
            place["tries"] = node.tries
            place["failures"] = node.failures
            place["busy"] = node.spent / 1e9
            place["mean"] = node.spent / 1e9 / node.tries if node.tries else 0.0
            place["worst"] = node.worst / 1e9
    return found
