"""The graph of messages between actors, as text, and as SVG for notebooks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import sendable
from callboard.observing.tracing.message_counts import UNKNOWN, MessageCounts

if TYPE_CHECKING:
    from callboard.system import ActorSystem

BY = ("actor", "class")
OUTSIDE = "(outside)"
"""The name of senders that are not actors."""

MOST_ACTORS = 24
"""More actors are drawn as their classes, unless `by` says otherwise."""
MOST_DRAWN = 60
"""The pairs with the most messages that a graph shows."""

# In pixels.
_WIDTH, _HEIGHT = 160, 34
_ACROSS, _DOWN = 90, 40
_MARGIN = 30
_LETTERS = 22  # of a name that fit into a box


@dataclass(frozen=True, slots=True)
class MessageEdge:
    """The messages that one actor or class of actors sends to another."""

    sender: str
    receiver: str
    messages: int
    """An estimate: the number of samples, times the sampling interval."""


@dataclass(frozen=True, slots=True, repr=False)
class MessageGraph:
    """The actors of a system, and how often they tell and ask each other.

    Its text is a table, and a notebook shows a drawing. Answers and native values are not counted.
    """

    system: str
    by: str
    """The type of the nodes: "actor", named by path, or "class"."""
    edges: tuple[MessageEdge, ...]
    """The busiest first."""
    samples: int
    """The number of sampled messages."""
    left_out: int
    """An estimate of the number of messages without an edge."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of senders and receivers, the busiest first."""
        busy: Counter[str] = Counter()
        for edge in self.edges:
            busy[edge.sender] += edge.messages
            busy[edge.receiver] += edge.messages
        return tuple(name for name, _ in busy.most_common())

    def __str__(self) -> str:
        counts = [f"{edge.messages:,}" for edge in self.edges]
        widths = [
            max(map(len, column), default=0)
            for column in (
                [edge.sender for edge in self.edges],
                [edge.receiver for edge in self.edges],
                counts,
            )
        ]
        lines = [
            f"{edge.sender:{widths[0]}}  ->  {edge.receiver:{widths[1]}}  {count:>{widths[2]}}"
            for edge, count in zip(self.edges, counts, strict=True)
        ]
        return "\n".join([*lines, self._summary()])

    def _repr_svg_(self) -> str:
        """Draw it, for notebooks."""
        return _svg(self.nodes, self.edges, self._summary())

    def __repr__(self) -> str:
        return (
            f"<MessageGraph of {self.system!r}: nodes {len(self.nodes)}, edges {len(self.edges)}>"
        )

    def _summary(self) -> str:
        text = f"messages of {self.system}, estimated from samples: {self.samples:,}"
        return text + (f"; left out, about: {self.left_out:,}" if self.left_out else "")


def message_graph(system: ActorSystem, by: str | None = None) -> MessageGraph:
    """Return which actors tell and ask each other, and about how often, from the traces so far.

    The numbers are estimated from the messages that traces sample: those with arrows, and some from
    outside. `by` is "actor", "class", or None: actors if there are few, otherwise their classes.

    Raises CallboardError without a trace, and ConfigError.
    """
    if by is not None:
        checks.one_of("`by`", by, BY, error=ConfigError)
    return graph_of(system._observer.traces.message_counts(), system.name, by)


def graph_of(counted: MessageCounts, system: str, by: str | None) -> MessageGraph:
    """Make a graph of the messages so far. `by` is one of BY, or None."""
    names = counted.names()
    messages, others, samples = counted.counts()
    if by is None:
        actors = {number for pair in messages for number in pair}
        by = "actor" if len(actors) <= MOST_ACTORS else "class"
    which = BY.index(by)

    def name(number: int) -> str:
        if number == 0:
            return OUTSIDE
        return names[number][which] if number in names else UNKNOWN

    counts: Counter[tuple[str, str]] = Counter()
    for (sender, receiver), count in messages.items():
        counts[name(sender), name(receiver)] += count
    drawn = counts.most_common(MOST_DRAWN)
    left_out = others + counts.total() - sum(count for _, count in drawn)
    edges = tuple(MessageEdge(*pair, count) for pair, count in drawn)
    return MessageGraph(system, by, edges, samples, left_out)


def _columns(nodes: tuple[str, ...], edges: tuple[MessageEdge, ...]) -> dict[str, int]:
    """Put a node one column behind the first that tells it; in front are those without one."""
    told = {edge.receiver for edge in edges if edge.receiver != edge.sender}
    receivers: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        receivers[edge.sender].append(edge.receiver)
    columns: dict[str, int] = {}
    beginners = [node for node in nodes if node not in told]
    for first in (beginners, *([node] for node in nodes)):  # then the rest: circles
        row = [node for node in first if node not in columns]
        column = 0
        while row:
            columns |= dict.fromkeys(row, column)
            column += 1
            found = dict.fromkeys(each for node in row for each in receivers[node])
            row = [each for each in found if each not in columns]
    return columns


def _corners(columns: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    rows: Counter[int] = Counter()
    corners = {}
    for node, column in columns.items():
        corners[node] = (
            _MARGIN + column * (_WIDTH + _ACROSS),
            _MARGIN + rows[column] * (_HEIGHT + _DOWN),
        )
        rows[column] += 1
    return corners


def _svg(nodes: tuple[str, ...], edges: tuple[MessageEdge, ...], summary: str) -> str:
    corners = _corners(_columns(nodes, edges))
    width = max([400, *(x + _WIDTH for x, _ in corners.values())]) + _MARGIN
    height = max([0, *(y + _HEIGHT for _, y in corners.values())]) + 2 * _MARGIN
    most = max((edge.messages for edge in edges), default=1)
    shapes = [_line(edge, corners, most) for edge in edges]
    shapes += [_box(node, *corners[node]) for node in nodes]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerUnits="userSpaceOnUse" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/>'
        "</marker></defs>\n"
        + "\n".join(shapes)
        + f'\n<text x="{_MARGIN}" y="{height - 10}" fill="#666" font-size="10">'
        f"{_text(summary)}</text>\n</svg>\n"
    )


def _text(text: str) -> str:
    return escape(sendable("".join(c if c.isprintable() else "?" for c in text)))


def _box(name: str, x: int, y: int) -> str:
    short = name if len(name) <= _LETTERS else "…" + name[1 - _LETTERS :]
    colour = "#eeeeee" if name == OUTSIDE else "#e3f0fb"
    return (
        f'<g><title>{_text(name)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" rx="6" stroke="#555" fill="{colour}"/><text '
        f'x="{x + _WIDTH // 2}" y="{y + 21}" text-anchor="middle">{_text(short)}</text></g>'
    )


def _line(edge: MessageEdge, corners: Mapping[str, tuple[int, int]], most: int) -> str:
    """Draw an edge. One that goes back, or to its own node, leaves above and comes in above."""
    x, y = corners[edge.sender]
    to_x, to_y = corners[edge.receiver]
    if to_x > x:
        x, y, to_y = x + _WIDTH, y + _HEIGHT // 2, to_y + _HEIGHT // 2
        bend = (x + to_x) // 2
        path = f"M{x} {y}C{bend} {y} {bend} {to_y} {to_x} {to_y}"
        at = (bend, (y + to_y) // 2 - 4)
    else:
        x, to_x = x + _WIDTH * 3 // 4, to_x + _WIDTH // 4
        top = min(y, to_y) - _MARGIN
        path = f"M{x} {y}C{x} {top} {to_x} {top} {to_x} {to_y}"
        at = ((x + to_x) // 2, (top * 6 + y + to_y) // 8 + 2)
    thick = 1 + 2 * math.log1p(edge.messages) / math.log1p(most)
    label = f"{edge.messages:,}"
    return (
        f"<g><title>{_text(edge.sender)} to {_text(edge.receiver)}: about {label}</title>"
        f'<path d="{path}" fill="none" stroke="#555" stroke-width="{thick:.1f}" '
        f'marker-end="url(#end)"/><text x="{at[0]}" y="{at[1]}" font-size="10" fill="#333" '
        f'text-anchor="middle">{label}</text></g>'
    )
