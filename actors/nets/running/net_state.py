"""The state of a running net, and the view that observers have of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.core.text import safe_str
from callboard.nets.drawing import shape_of
from callboard.nets.kernel.executor import NetExecutor, NetNode, begin
from callboard.nets.kernel.leaves import BoxNode, CalledBoxNode
from callboard.nets.kernel.node_builder import (
    NodeBuilder,
    generates,
    never,
    parts_within,
    runs_elsewhere,
)
from callboard.nets.kernel.process_boxes import ProcessBoxNode
from callboard.nets.kernel.record import Assembler, Shapes
from callboard.nets.kernel.specializer import Specializer, names_of
from callboard.nets.running.reports import NetStatistics
from callboard.nets.terms.network import Box, Net
from callboard.nets.types.flows import labels_mentioned
from callboard.nets.types.typed import Typed
from callboard.observing.layout import GraphShape
from callboard.observing.wait_report import WaitRecord


class NetState:
    """A net's nodes and entities, and their executor.

    `moves` tells which boxes may be called elsewhere, for batches; `moving` has these, with nodes.
    """

    def __init__(self, typed: Typed, *, moves: Callable[[Box], bool] = never) -> None:
        parts = parts_within(typed.net)
        self.shapes = Shapes()
        self.executor = NetExecutor(self.shapes)
        names = names_of([sorted(frozenset().union(*map(labels_mentioned, parts)))])
        boxes = [part for part in parts if isinstance(part, Box)]
        is_alone = not any(moves(box) or runs_elsewhere(box) for box in boxes)
        self._builder = NodeBuilder(Specializer(self.shapes, names), is_alone=is_alone, moves=moves)
        node = self._builder.node(typed)
        # In the program, all outputs of a record come before the next record, in whatever order.
        self._is_plain = not self._builder.keeps_order and not any(
            runs_elsewhere(box) or generates(box) for box in boxes
        )
        self.executor.keeps_lineage = not is_alone
        self.executor.first = begin(node)
        self.entry = Assembler(self.shapes, names, None, frozenset(), None, "send()")
        self._begins_by_itself = typed._is_initialiser
        self.nodes = self._builder.nodes
        self.moving = self._builder.moving
        self.seen = NetStatistics()
        self._has_begun = False
        self.on_end: Callable[[], object] = lambda: None
        """The coordinator calls this at its end, after which no figure changes."""

    def begin_here(self) -> None:
        """Have all boxes begin in the program, where plain nets need no lineages."""
        for _, node in self.moving:
            node.is_here = True
        self.executor.keeps_lineage = not self._is_plain

    def begin(self) -> None:
        """Run the initialisers that there are from the start, once."""
        if self._has_begun:
            return
        self._has_begun = True
        self._builder.unstarted.start(self.executor)
        if self._begins_by_itself:
            self.executor.start(self.shapes.of_labels(frozenset()))

    def statistics(self) -> NetStatistics:
        """Return the figures, brought up to date."""
        seen, executor = self.seen, self.executor
        seen.hops, seen.elsewhere, seen.in_cells = executor.hops, executor.elsewhere, executor.kept
        calls: Counter[str] = Counter()
        for call in executor.running:
            calls[call.box.path] += call.size
        seen.calls = dict(sorted((+calls).items()))
        seen.places = seen_at(self.nodes)
        return seen


def seen_at(nodes: Iterable[NetNode]) -> dict[str, dict[str, Any]]:
    """Return for each place in a net its records and entities, and the times of boxes."""
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        place = found.setdefault(node.path, {"records": 0, "entities": 0, "made": 0})
        place["records"] += node.passed
        place["entities"] += node.alive
        place["made"] += node.made
        if isinstance(node, (BoxNode, CalledBoxNode, ProcessBoxNode)):
            place["waiting"] = node.waiting
            place["calls"] = node.calls
            place["tries"] = node.tries
            place["failures"] = node.failures
            place["busy"] = node.spent / 1e9
            place["mean"] = node.spent / 1e9 / node.tries if node.tries else 0.0
            place["worst"] = node.worst / 1e9
            place["thread"] = place["reason"] = ""
        if isinstance(node, ProcessBoxNode):
            choice = node.choice
            there = "worker processes" if choice is None else choice.there
            place["thread"] = "" if node.is_here else there
            place["reason"] = "" if choice is None else choice.reason
    return found


_LONGEST = 60


class RunView:
    """A run as it is now. See RunningGraph. Any thread.

    The figures are read without waiting for the coordinator, which may be in a box. So they may be
    of slightly different moments.
    """

    def __init__(self, net: Net, coordinator: ActorRef[Any], state: NetState) -> None:
        self._net = net
        self._coordinator = coordinator
        self._nodes = state.nodes
        self._seen = state.seen
        self._shape: GraphShape | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return not self._coordinator.is_alive

    def note_end(self) -> None:
        """Tell the observer that the figures do not change any more."""
        system = self._coordinator.system
        if system is not None:
            system._observer.note_end(self)

    def is_anybody_at_work(self) -> bool:
        """Tell whether the figures may still change."""
        return False

    def waits(self) -> list[WaitRecord]:
        """Return nothing: the coordinator is an actor, whose waits are listed as such."""
        return []

    def leave_waits(self) -> None:
        """Do nothing: its threads do not wait for answers."""

    def end_with_system(self) -> None:
        """Do nothing: its actors have all that there is to release."""

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
        """Return the shape of the net."""
        if self._shape is None:
            self._shape = shape_of(self._net)
        return self._shape
