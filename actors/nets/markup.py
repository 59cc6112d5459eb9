"""Nets as HTML for notebooks: boxes within boxes, from left to right."""

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
    drawers,
)
from callboard.nets.types.places import Place, places_in

_LEAF = "border:1px solid #555;border-radius:6px;padding:4px 8px;margin:2px;text-align:center"
_GROUP = "border:1px dashed #888;border-radius:6px;padding:4px;margin:2px"
_COLOURS = {"box": "#e3f0fb", "filter": "#e5f5e0", "sync": "#fdf0d5"}


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
            return _group(f"again, until {', '.join(map(str, exits))}", parts)
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


drawers.append(lambda net: markup_of(net, {}))
