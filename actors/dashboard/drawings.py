"""The pictures of runs: where boxes and lines are, and how many rows go along each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from callboard.observing.layout import DOWN, HEIGHT, WIDTH, Corner, lay_out, path_of
from callboard.observing.top_frames import RunRow, plain

_GAP = 8  # pixels between a text and the end of its line


class Drawing:
    """The picture of one run. Its lines and boxes stay where they are, and rates change."""

    def __init__(self, shape: Sequence[Any]) -> None:
        boxes, lines, backs = shape
        inputs: list[list[int]] = [[] for _ in boxes]
        for source, end, _ in lines:
            inputs[end].append(source)
        layout = lay_out(inputs, [i for i, (_, kind, _) in enumerate(boxes) if kind == "entry"])
        self._boxes = boxes
        # By their ends, which is the order of the layout.
        self._lines = sorted(lines, key=lambda line: line[1])
        self._outputs = Counter(source for source, _, _ in lines)
        self._inputs = Counter(end for _, end, _ in lines)
        self._values: dict[str, Any] = {
            "width": layout.width,
            "height": layout.height + (DOWN if backs else 0),
            "boxes": [
                {"name": plain(name), "kind": kind, "key": key, "x": x, "y": y}
                for (name, kind, key), (x, y) in zip(boxes, layout.corners, strict=True)
            ],
            "backs": [_way_back(layout.corners[a], layout.corners[b]) for a, b, _ in backs],
        }
        self._ways = [
            {"d": path_of(way), "text": plain(text), **self._place(way, source)}
            for way, (source, _, text) in zip(layout.ways, self._lines, strict=True)
        ]

    def _place(self, way: Sequence[Corner], source: int) -> dict[str, Any]:
        """Return where a line's text begins or ends: at that end where fewer lines meet."""
        begins = self._outputs[source] == 1
        x, y = way[0] if begins else way[1]
        x += WIDTH + _GAP if begins else -_GAP
        return {"x": x, "y": y + HEIGHT // 2 - 5, "anchor": "start" if begins else "end"}

    def of(self, run: RunRow) -> dict[str, Any]:
        """Return it with the rates of now, for JSON."""
        rates = {row.key: (row.rate_in, row.rate_out) for row in run.operators}
        lines = [
            way | {"rate": self._rate(source, end, run, rates)}
            for way, (source, end, _) in zip(self._ways, self._lines, strict=True)
        ]
        return self._values | {"lines": lines}

    def _rate(
        self,
        source: int,
        end: int,
        run: RunRow,
        rates: Mapping[str, tuple[float, float | None]],
    ) -> float | None:
        """Return the rows a second on a line: what its end has in, if it has no other line."""
        key = self._boxes[end][2]
        if self._inputs[end] == 1 and key in rates:
            return rates[key][0]
        if self._boxes[source][1] == "entry":
            return run.entries[source] if source < len(run.entries) else run.rate
        key = self._boxes[source][2]
        return rates[key][1] if self._outputs[source] == 1 and key in rates else None


def _way_back(source: Corner, end: Corner) -> str:
    x, y, to, there = source[0] + WIDTH // 2, source[1] + HEIGHT, end[0] + WIDTH // 2, end[1]
    below = max(y, there + HEIGHT) + DOWN
    return f"M{x} {y}C{x} {below} {to} {below} {to} {there + HEIGHT}"
