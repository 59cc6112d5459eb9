"""The records of why actors and operators wait, and their report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core.markup import block, paragraph, table

# The number of entries that a text names.
MOST_LINES = 100


@dataclass(frozen=True, slots=True)
class WaitRecord:
    """Why an actor or operator waits, or what it is doing."""

    kind: Literal["actor", "operator", "entry", "process"]
    """An actor or task, an operator of a running graph, the input of such a graph, or a process of
    a pool."""
    name: str
    """The path of the actor, or the name of the operator."""
    reason: str
    """One of those in `docs/troubleshooting.md`, such as "room"."""
    words: str
    """The reason in words, with the actor, channel, worker or operator concerned."""
    seconds: float | None = None
    """How long it has been handling its message; None without one."""
    stack: str = ""
    """Where in the code it is handling that message, as in a traceback."""

    def __str__(self) -> str:
        stack = "".join(f"\n{line}" for line in self.stack.splitlines())
        return f"{self.name} {self.words}{stack}"


class WaitReport(tuple[WaitRecord, ...]):
    """The result of `ActorSystem.why_waiting()`.

    It contains the actors, parents before their children, then the operators of running graphs in
    order. Its text begins with the count of each reason. Then it has a line for each entry, those
    that explain a standstill first, without those that have no input.
    """

    __slots__ = ()

    @property
    def reasons(self) -> dict[str, int]:
        """The number of entries of each reason."""
        counts = Counter(wait.reason for wait in self)
        return {reason: counts[reason] for reason in WaitReason if counts[reason]}

    def of(self, name: str) -> WaitRecord:
        """Return the first entry with this actor's path or operator's name. Raises KeyError."""
        for wait in self:
            if wait.name == name:
                return wait
        raise KeyError(name)

    def _repr_html_(self) -> str:
        """Return the text as a table, for notebooks."""
        shown = _shown(self)
        rows = [(one.name, one.reason, one.words) for one in shown[:MOST_LINES]]
        stacks = "".join(block(f"{one.name}\n{one.stack}") for one in shown if one.stack)
        more = paragraph(*_more(shown)) if len(shown) > MOST_LINES else ""
        return (
            paragraph(self._counts())
            + table(("name", "reason", "why"), rows, texts=range(3))
            + more
            + stacks
        )

    def __repr__(self) -> str:
        return f"<WaitReport: {self._counts()}>"

    def __str__(self) -> str:
        return "\n".join([self._counts(), *_lines(self)])

    def _counts(self) -> str:
        counts = (f"{reason} {count}" for reason, count in self.reasons.items())
        return ", ".join(counts) or "no actors"


def _lines(waits: Iterable[WaitRecord]) -> Iterator[str]:
    shown = _shown(waits)
    yield from map(str, shown[:MOST_LINES])
    yield from _more(shown)


def _shown(waits: Iterable[WaitRecord]) -> list[WaitRecord]:
    order: list[str] = list(WaitReason)
    shown = (one for one in waits if one.reason != WaitReason.NO_INPUT)
    return sorted(shown, key=lambda one: order.index(one.reason))


def _more(shown: list[WaitRecord]) -> list[str]:
    more = len(shown) - MOST_LINES
    return [f"... and {more} more"] if more > 0 else []
