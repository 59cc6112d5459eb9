"""How a graph or a net that runs looks: its boxes, and the lines between them."""

from __future__ import annotations

from typing import NamedTuple


class GraphShape(NamedTuple):
    """Boxes in an order in which each comes after those that it has lines from; for JSON.

    A box is its name, its kind and the key of its figures, which may be empty. A line is the
    numbers of the boxes from which and to which it goes, and its text. `backs` are lines that go
    back to a box before.
    """

    boxes: list[tuple[str, str, str]]
    lines: list[tuple[int, int, str]]
    backs: list[tuple[int, int, str]]
