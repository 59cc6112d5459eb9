"""The shape of a net, for those that draw it as it runs."""

from __future__ import annotations

from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    Net,
    RecordFilter,
    Split,
    Star,
    Sync,
)
from callboard.nets.types.places import Place, places_in
from callboard.observing.layout import GraphShape

JUNCTION = "junction"
"""The kind of boxes at which lines only part or meet."""


def shape_of(net: Net) -> GraphShape:
    """Return the boxes of a net and the lines between them. The keys of figures are paths."""
    shape = GraphShape([("in", "entry", "")], [], [])
    last = _draw(shape, places_in(net), 0, "")
    _box(shape, "out", "exit", "", [(last, "")])
    return shape


def _draw(shape: GraphShape, place: Place, before: int, text: str) -> int:
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
            ends = [(_draw(shape, part, test, ""), "") for part in parts]
            return _box(shape, "", JUNCTION, "", ends)
        case Star(_, exits):
            return _loop(shape, place, (before, text), "again", ", ".join(map(str, exits)))
        case Feedback(_, backs):
            return _loop(shape, place, (before, text), ", ".join(map(str, backs)), "else")
        case Split(_, by):
            test = _box(shape, by, JUNCTION, "", [(before, text)])
            return _draw(shape, parts[0], test, f"each {by}")
    for part in parts:
        before, text = _draw(shape, part, before, text), ""
    return before


def _loop(
    shape: GraphShape, place: Place, before: tuple[int, str], inward: str, outward: str
) -> int:
    test = _box(shape, "?", JUNCTION, "", [before])
    end = _draw(shape, place.parts[0], test, inward)
    shape.backs.append((end, test, ""))
    return _box(shape, "", JUNCTION, "", [(test, outward)])


def _box(shape: GraphShape, name: str, kind: str, key: str, lines: list[tuple[int, str]]) -> int:
    number = len(shape.boxes)
    shape.boxes.append((name, kind, key))
    shape.lines.extend((before, number, text) for before, text in lines)
    return number
