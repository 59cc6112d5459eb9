"""The shape of a running graph, and the layout of its boxes and lines.

There is a column for each distance from the entries; rows of data go from left to right. A box is
in the row in the middle of those that it has lines from, or below it. A line that passes a column
has a place in it, like a box, so that it does not run behind boxes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

# In pixels.
WIDTH, HEIGHT = 150, 44
ACROSS, DOWN = 60, 24
MARGIN = 12

Corner = tuple[int, int]
# An item of a column: the number of a box; or a line that passes it, by number, end and column.
Item = int | tuple[int, int, int]


class GraphShape(NamedTuple):
    """Boxes in an order in which each comes after those that it has lines from; for JSON.

    A box is its name, its kind and the key of its figures, which may be empty. A line is the
    numbers of the boxes from which and to which it goes, and its text. `backs` are lines that go
    back to a box before.
    """

    boxes: list[tuple[str, str, str]]
    lines: list[tuple[int, int, str]]
    backs: list[tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """The upper left corners of boxes, and for each line the corners of the places on its way."""

    corners: tuple[Corner, ...]
    ways: tuple[tuple[Corner, ...], ...]
    width: int
    height: int


def lay_out(inputs: Sequence[Sequence[int]], entries: Collection[int] = ()) -> PictureLayout:
    """Find places for boxes, and for the lines between them.

    `inputs` has the boxes that each box has lines from, by their numbers. All of them come before
    it. Lines are in the order of `inputs`. A box of `entries` stands beside the first that has a
    line from it.
    """
    lines, items = _lines(inputs, _columns(inputs, entries))
    corners = _corners(lines, items)
    return PictureLayout(
        tuple(corners[box] for box in range(len(inputs))),
        tuple(tuple(corners[item] for item in way) for way in lines),
        max((x for x, _ in corners.values()), default=0) + WIDTH + MARGIN,
        max((y for _, y in corners.values()), default=0) + HEIGHT + MARGIN,
    )


def path_of(way: Sequence[Corner]) -> str:
    """Return a line as SVG's path: a curve between columns, and straight in those it passes."""
    (x, y), *further = [(x, y + HEIGHT // 2) for x, y in way]
    path = f"M{x + WIDTH} {y}"
    for number, (x, below) in enumerate(further, start=1):
        bend = x - ACROSS // 2
        path += f"C{bend} {y} {bend} {below} {x} {below}"
        y = below
        if number < len(further):
            path += f"H{x + WIDTH}"
    return path


def _columns(inputs: Sequence[Sequence[int]], entries: Collection[int]) -> list[int]:
    columns: list[int] = []
    for before in inputs:
        columns.append(1 + max((columns[each] for each in before), default=-1))
    beside: dict[int, int] = {}
    for box, before in enumerate(inputs):
        for each in before:
            if each in entries:
                column = columns[box] - 1
                beside[each] = min(column, beside.get(each, column))
    return [beside.get(box, column) for box, column in enumerate(columns)]


def _lines(
    inputs: Sequence[Sequence[int]], columns: Sequence[int]
) -> tuple[list[list[Item]], dict[int, list[Item]]]:
    """Find the way of each line, from box to box, and what stands in each column."""
    lines: list[list[Item]] = []
    items: dict[int, list[Item]] = defaultdict(list)
    for box, before in enumerate(inputs):
        items[columns[box]].append(box)
        for each in before:
            between = range(columns[each] + 1, columns[box])
            passing: list[Item] = [(len(lines), box, column) for column in between]
            lines.append([each, *passing, box])
            for column, item in zip(between, passing, strict=True):
                items[column].append(item)
    return lines, items


def _corners(lines: list[list[Item]], items: Mapping[int, list[Item]]) -> dict[Item, Corner]:
    """Find the upper left corner of each item."""
    before: dict[Item, list[Item]] = defaultdict(list)
    for way in lines:
        for source, item in pairwise(way):
            before[item].append(source)
    rows: dict[Item, int] = {}
    corners: dict[Item, Corner] = {}
    for column in sorted(items):
        middles = {
            item: sum(rows[each] for each in before[item]) / max(1, len(before[item]))
            for item in items[column]
        }
        free = 0
        for item in sorted(items[column], key=middles.__getitem__):
            rows[item] = max(free, int(middles[item]))
            free = rows[item] + 1
            corners[item] = (
                MARGIN + column * (WIDTH + ACROSS),
                MARGIN + rows[item] * (HEIGHT + DOWN),
            )
    return corners
