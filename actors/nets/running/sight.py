"""A run of a net, as those see it that look into its system."""

from __future__ import annotations

from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard.core.text import safe_str
from callboard.nets.running.messages import Look, NetStatistics
from callboard.nets.shaping import shape_of
from callboard.nets.terms.network import Net
from callboard.observing.shape import GraphShape
from callboard.observing.wait import Wait

_LONGEST = 60


class NetSight:
    """A run by its last answer. See RunningGraph. Any thread.

    A look asks the run's actor for the next answer, and does not wait for it. The actor of a manual
    system is not asked, as its runs would not be the same then.
    """

    def __init__(self, net: Net, conductor: ActorRef[Any], is_manual: bool) -> None:
        self._net = net
        self._conductor = conductor
        self._is_manual = is_manual
        self._seen = NetStatistics()
        self._asked: Future[Any] | None = None
        self._shape: GraphShape | None = None
        self._has_all = False

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return not self._conductor.is_alive

    def note_end(self, seen: NetStatistics) -> None:
        """Hear from the run's actor how much the run has done in all."""
        self._seen = seen
        self._has_all = True
        system = self._conductor.system
        if system is not None:
            system._note_end(self)

    def is_anybody_at_work(self) -> bool:
        """Tell whether the figures may still change."""
        return False

    def waits(self) -> list[Wait]:
        """Return nothing: the run's actor says why it waits."""
        return []

    def leave_waits(self) -> None:
        """Do nothing: no thread of its waits for answers."""

    def end_with_system(self) -> None:
        """Do nothing: its actors hold what it has."""

    def figures(self) -> dict[str, Any]:
        """Return the figures as of the last look, and ask for the next."""
        asked = self._asked
        if self._has_all:
            pass
        elif asked is not None and asked.done() and asked.exception() is None:
            self._seen = asked.result()
        if not (self._is_manual or self._has_all) and (asked is None or asked.done()):
            self._asked = self._conductor.ask(Look())
        seen = self._seen
        return {
            "run": f"net {safe_str(self._net)[:_LONGEST]}",
            "rows": seen.sent,
            "skipped": seen.skipped,
            "late": 0,
            "unpaired": 0,
            "operators": [],
            "places": seen.places,
            "calls": seen.calls,
        }

    def shape(self) -> GraphShape:
        """Return what the net looks like."""
        if self._shape is None:
            self._shape = shape_of(self._net)
        return self._shape
