"""The state of a net at work, below its actors, and the view that observers have of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.core.text import safe_str
from callboard.nets.drawing import shape_of
from callboard.nets.kernel.building import Builder, parts_within, runs_elsewhere
from callboard.nets.kernel.calls import CalledBoxNode
from callboard.nets.kernel.carrier import Carrier, NetNode, begin
from callboard.nets.kernel.nodes import BoxNode
from callboard.nets.kernel.planning import Planner, names_of
from callboard.nets.kernel.record import Assembler, Shapes
from callboard.nets.running.reports import NetStatistics
from callboard.nets.terms.network import Box, Net
from callboard.nets.types.flows import labels_mentioned
from callboard.nets.types.typed import Typed
from callboard.observing.layout import GraphShape
from callboard.observing.wait import WaitRecord


class NetState:
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


_LONGEST = 60


class RunView:
    """A run as it is now. See RunningGraph. Any thread.

    The figures are read without waiting for the run's actor, which may be in a box: they may be of
    slightly different moments.
    """

    def __init__(self, net: Net, conductor: ActorRef[Any], state: NetState) -> None:
        self._net = net
        self._conductor = conductor
        self._nodes = state.nodes
        self._seen = state.seen
        self._shape: GraphShape | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return not self._conductor.is_alive

    def note_end(self) -> None:
        """Hear from the run's actor that the figures are the last ones."""
        system = self._conductor.system
        if system is not None:
            system._observer.note_end(self)

    def is_anybody_at_work(self) -> bool:
        """Tell whether the figures may still change."""
        return False

    def waits(self) -> list[WaitRecord]:
        """Return nothing: the run's actor says why it waits."""
        return []

    def leave_waits(self) -> None:
        """Do nothing: no thread of its waits for answers."""

    def end_with_system(self) -> None:
        """Do nothing: its actors hold what it has."""

    def figures(self) -> dict[str, Any]:
        """Return the figures."""
        seen = self._seen
        return {
            "run": f"net {safe_str(self._net)[:_LONGEST]}",
            "rows": seen.sent,
            "skipped": seen.skipped,
            "late": 0,
            "unpaired": 0,
            "operators": [],
            "places": seen_at(self._nodes),
            "calls": {node.path: node.running for node in self._nodes if node.running},
        }

    def shape(self) -> GraphShape:
        """Return what the net looks like."""
        if self._shape is None:
            self._shape = shape_of(self._net)
        return self._shape
