"""Drawings of nets: Mermaid flowcharts, HTML for notebooks, and shapes for the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard.core.markup import text_of
from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    Net,
    RecordFilter,
    Split,
    Star,
    Sync,
    checked_net,
    draw,
)
from callboard.nets.types.places import Place, places_in
from callboard.observing.layout import GraphShape

# Characters that a Mermaid label must escape.
_ENTITIES = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;", "\n": " "}
)

JUNCTION = "junction"
"""The kind of boxes at which lines only part or meet."""

_BRACKETS = {
    "entry": ('(["', '"])'),
    "exit": ('(["', '"])'),
    "box": ('["', '"]'),
    "filter": ('[/"', '"/]'),
    "sync": ('[["', '"]]'),
    JUNCTION: ('{"', '"}'),
}


def mermaid(net: Net) -> str:
    """Write a net as a Mermaid flowchart.

    Boxes are rectangles, filters are slanted, and synchrocells have double sides. Choices and the
    tests of replications are rhombuses.
    """
    return mermaid_of_run(checked_net("the argument of mermaid()", net), {})


def mermaid_of_run(net: Net, places: Mapping[str, Mapping[str, Any]]) -> str:
    """Write a net with the records that came to each place, and the replicas."""
    shape = shape_of(net)
    lines = ["flowchart LR"]
    for number, (name, kind, key) in enumerate(shape.boxes):
        left, right = _BRACKETS[kind] if name else ('((" ', '"))')
        seen = places.get(key)
        counts = f"<br/>{seen['records']} records, {seen['entities']} now" if seen else ""
        lines.append(f"    n{number}{left}{name.translate(_ENTITIES)}{counts}{right}")
    for source, end, text in (*shape.lines, *shape.backs):
        arrow = f'-- "{text.translate(_ENTITIES)}" -->' if text else "-->"
        lines.append(f"    n{source} {arrow} n{end}")
    return "\n".join(lines) + "\n"


_LEAF = "border:1px solid #555;border-radius:6px;padding:4px 8px;margin:2px;text-align:center"
_GROUP = "border:1px dashed #888;border-radius:6px;padding:4px;margin:2px"
_COLOURS = {"box": "#e3f0fb", "filter": "#e5f5e0", "sync": "#fdf0d5"}


@draw.register(Net)
def _(net: Net) -> str:
    return markup_of(net, {})


def markup_of(net: Net, places: Mapping[str, Mapping[str, Any]]) -> str:
    """Write a net as HTML, with the records that came to each place, where `places` knows them."""
    return f'<div style="color:#000;font-size:12px">{_draw(places_in(net), places)}</div>'


def _draw(place: Place, places: Mapping[str, Mapping[str, Any]]) -> str:
    net = place.net
    match net:
        case Box(name):
            return _leaf(place, name, "box", places)
        case RecordFilter():
            return _leaf(place, str(net), "filter", places)
        case Sync():
            return _leaf(place, str(net), "sync", places)
    parts = [_draw(part, places) for part in place.parts]
    match net:
        case Choice(_, is_ordered):
            return _group("one of, in order" if is_ordered else "one of", parts, "column")
        case Star(_, exits):
            return _group(f"replicas in series, until {', '.join(map(str, exits))}", parts)
        case Feedback(_, backs):
            return _group(f"again, while {', '.join(map(str, backs))}", parts)
        case Split(_, by):
            return _group(f"a replica for each {by}", parts)
    return _flex(f"{' → '.join(parts)}" if len(parts) > 1 else "".join(parts), "row")


def _flex(inner: str, direction: str) -> str:
    style = f"display:inline-flex;flex-direction:{direction};align-items:center"
    return f'<div style="{style}">{inner}</div>'


def _group(title: str, parts: list[str], direction: str = "row") -> str:
    inner = _flex("".join(parts), direction)
    return f'<div style="{_GROUP}"><i>{text_of(title)}</i><br/>{inner}</div>'


def _leaf(place: Place, text: str, kind: str, places: Mapping[str, Mapping[str, Any]]) -> str:
    seen = places.get(place.path)
    counts = f"<br/>{text_of(seen['records'])} records" if seen else ""
    return f'<div style="{_LEAF};background:{_COLOURS[kind]}">{text_of(text)}{counts}</div>'


def shape_of(net: Net) -> GraphShape:
    """Return the boxes of a net and the lines between them. The keys of figures are paths."""
    shape = GraphShape([("in", "entry", "")], [], [])
    last = _add(shape, places_in(net), 0, "")
    _box(shape, "out", "exit", "", [(last, "")])
    return shape


def _add(shape: GraphShape, place: Place, before: int, text: str) -> int:
    """Draw a net behind a box, the line to it with a text; return its last box."""
    net, parts = place.net, place.parts
    match net:
        case Box(name):
            return _box(shape, name, "box", place.path, [(before, text)])
        case RecordFilter():
            return _box(shape, str(net), "filter", place.path, [(before, text)])
        case Sync():
            return _box(shape, str(net), "sync", place.path, [(before, text)])
        case Choice(_, is_ordered):
            name = "||" if is_ordered else "|"
            test = _box(shape, name, JUNCTION, "", [(before, text)])
            ends = [(_add(shape, part, test, ""), "") for part in parts]
            return _box(shape, "", JUNCTION, "", ends)
        case Star(_, exits):
            return _loop(shape, place, (before, text), "next replica", ", ".join(map(str, exits)))
        case Feedback(_, backs):
            return _loop(shape, place, (before, text), ", ".join(map(str, backs)), "else")
        case Split(_, by):
            test = _box(shape, by, JUNCTION, "", [(before, text)])
            return _add(shape, parts[0], test, f"a replica for each {by}")
    for part in parts:
        before, text = _add(shape, part, before, text), ""
    return before


def _loop(
    shape: GraphShape, place: Place, before: tuple[int, str], inward: str, outward: str
) -> int:
    test = _box(shape, "?", JUNCTION, "", [before])
    end = _add(shape, place.parts[0], test, inward)
    shape.backs.append((end, test, ""))
    return _box(shape, "", JUNCTION, "", [(test, outward)])


def _box(shape: GraphShape, name: str, kind: str, key: str, lines: list[tuple[int, str]]) -> int:
    number = len(shape.boxes)
    shape.boxes.append((name, kind, key))
    shape.lines.extend((before, number, text) for before, text in lines)
    return number
