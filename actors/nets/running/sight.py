"""A run of a net, as those see it that look into its system."""

from __future__ import annotations

from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.core.text import safe_str
from callboard.nets.running.setting import Setting, seen_at
from callboard.nets.shaping import shape_of
from callboard.nets.terms.network import Net
from callboard.observing.layout import GraphShape
from callboard.observing.wait import WaitRecord

_LONGEST = 60


class NetSight:
    """A run as it is now. See RunningGraph. Any thread.

    The figures are read without waiting for the run's actor, which may be in a box: they may be of
    slightly different moments.
    """

    def __init__(self, net: Net, conductor: ActorRef[Any], setting: Setting) -> None:
        self._net = net
        self._conductor = conductor
        self._nodes = setting.nodes
        self._seen = setting.seen
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
