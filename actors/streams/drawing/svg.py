"""Pictures of graphs, as SVG.

A column for each distance from the entries; rows go from left to right. An operator is in the row
in the middle of those that it reads from, or below it. A line that passes a column has a place in
it, as an operator has, so that it runs past the others and not behind them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from callboard.streams.drawing.describe import sharing_of
from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.units import Unit

# In pixels.
_WIDTH, _HEIGHT = 150, 44
_ACROSS, _DOWN = 60, 24
_MARGIN = 12
_LETTERS = 20  # of a name that fit into a box

_COLOURS = {
    "stateless": "#e3f0fb",
    "partitioned": "#e5f5e0",
    "stateful": "#fdf0d5",
    "end": "#eeeeee",
}

# An item of a column: an operator, or a line that passes it: (where from, reader, column).
Item = Operator | tuple[Outlet, Operator, int]


def svg(
    operators: Sequence[Operator], names: Mapping[Operator, str], units: Mapping[Operator, Unit]
) -> str:
    """Write the picture."""
    lines, items = _lines(operators, _columns(operators))
    corners = _corners(lines, items)
    width = max(x for x, _ in corners.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in corners.values()) + _HEIGHT + _MARGIN
    shapes = [_line(outlet, [corners[item] for item in way]) for outlet, way in lines]
    shapes += [
        _box(operator, names[operator], units.get(operator), *corners[operator])
        for operator in operators
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _columns(operators: Sequence[Operator]) -> dict[Operator, int]:
    columns: dict[Operator, int] = {}
    for operator in operators:
        before = [columns[each.operator] for each in operator.inputs]
        columns[operator] = 1 + max(before, default=-1)
    beside: dict[Operator, int] = {}  # an entry stands beside the first that reads from it
    for operator in operators:
        for each in operator.inputs:
            if each.operator.kind == "entry":
                column = columns[operator] - 1
                beside[each.operator] = min(column, beside.get(each.operator, column))
    return columns | beside


def _lines(
    operators: Sequence[Operator], columns: Mapping[Operator, int]
) -> tuple[list[tuple[Outlet, list[Item]]], dict[int, list[Item]]]:
    """Find the way of each line, from operator to operator, and what stands in each column."""
    lines: list[tuple[Outlet, list[Item]]] = []
    items: dict[int, list[Item]] = defaultdict(list)
    for operator in operators:
        items[columns[operator]].append(operator)
        for each in operator.inputs:
            between = range(columns[each.operator] + 1, columns[operator])
            passing: list[Item] = [(each, operator, column) for column in between]
            lines.append((each, [each.operator, *passing, operator]))
            for column, item in zip(between, passing, strict=True):
                items[column].append(item)
    return lines, items


def _corners(
    lines: list[tuple[Outlet, list[Item]]], items: Mapping[int, list[Item]]
) -> dict[Item, tuple[int, int]]:
    """Find the upper left corner of each item."""
    before: dict[Item, list[Item]] = defaultdict(list)
    for _, way in lines:
        for source, item in pairwise(way):
            before[item].append(source)
    rows: dict[Item, int] = {}
    corners: dict[Item, tuple[int, int]] = {}
    for column in sorted(items):
        middles = {
            item: sum(rows[each] for each in before[item]) / max(1, len(before[item]))
            for item in items[column]
        }
        free = 0
        for item in sorted(items[column], key=middles.__getitem__):
            rows[item] = max(free, int(middles[item]))
            free = rows[item] + 1
            x = _MARGIN + column * (_WIDTH + _ACROSS)
            corners[item] = x, _MARGIN + rows[item] * (_HEIGHT + _DOWN)
    return corners


def _box(operator: Operator, name: str, unit: Unit | None, x: int, y: int) -> str:
    short = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
    middle = x + _WIDTH // 2
    where = f" · {unit.where}" if unit is not None and unit.where else ""
    return (
        f"<g><title>{escape(name)}: {escape(sharing_of(operator, unit) or operator.kind)}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" stroke="#555" '
        f'fill="{_COLOURS[operator.work]}"/>'
        f'<text x="{middle}" y="{y + 19}" text-anchor="middle">{escape(short)}</text>'
        f'<text x="{middle}" y="{y + 35}" text-anchor="middle" fill="#666" font-size="10">'
        f"{escape(operator.kind + where)}</text></g>"
    )


def _line(outlet: Outlet, corners: list[tuple[int, int]]) -> str:
    """Draw a line that curves between columns, and is straight in those that it passes."""
    (x, y), *further = [(x, y + _HEIGHT // 2) for x, y in corners]
    path = f"M{x + _WIDTH} {y}"
    for number, (x, below) in enumerate(further, start=1):
        bend = x - _ACROSS // 2
        path += f"C{bend} {y} {bend} {below} {x} {below}"
        y = below
        if number < len(further):
            path += f"H{x + _WIDTH}"
    shape = f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#tip)"/>'
    if label := escape(outlet.label):
        x, y = further[0]
        at = f'x="{x - 10}" y="{y - 5}" text-anchor="end"'
        shape += f'<text {at} font-size="10" fill="#666">{label}</text>'
    return shape
