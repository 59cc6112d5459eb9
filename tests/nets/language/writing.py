"""Writes nets as texts, which are parsed to the same terms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard.nets.errors import NetError
from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    NamedNet,
    Net,
    Ordered,
    Placed,
    RecordFilter,
    Serial,
    Split,
    Star,
    Sync,
)

_RESERVED = {"box", "net", "type", "typesig", "connect", "if", "then", "else"}


def text_of(net: Net) -> str:
    """Return a text from which `parse` makes this net, given the functions of its boxes.

    A net without a name gets the name `main`. The language has no words for the options of boxes,
    for `ties`, `limit` and `timeout`; they are left out.
    """
    return _definition(net if isinstance(net, NamedNet) else NamedNet("main", net))


def _definition(net: NamedNet | Box, indent: str = "") -> str:
    name = _name(net.name)
    if isinstance(net, Box):
        return f"{indent}box {name} ({net.signature});\n"
    signature = "" if net.signature is None else f" ({net.signature.in_full()})"
    inner = "".join(_definition(found, indent + "  ") for found in _inner(net))
    braces = f"\n{indent}{{\n{inner}{indent}}}\n{indent}" if inner else " "
    return f"{indent}net {name}{signature}{braces}connect {net.body};\n"


def _inner(net: NamedNet) -> list[NamedNet | Box]:
    """Return the boxes and nets that a net's own definitions must name."""
    found: dict[str, NamedNet | Box] = {}
    for part in _parts(net.body):
        known = found.setdefault(part.name, part)
        if _meaning(known) != _meaning(part):
            raise NetError(
                f"two parts of {net.name!r} are named {part.name!r}; a text has one for each name"
            )
    return list(found.values())


def _meaning(part: NamedNet | Box) -> object:
    return part.signature if isinstance(part, Box) else part


def _parts(net: Net) -> Iterator[NamedNet | Box]:
    """Yield the boxes and named nets in a net, from left to right, without what is inside them."""
    waiting = [net]
    while waiting:
        match waiting.pop():
            case (NamedNet() | Box()) as part:
                yield part
            case Serial(first, second):
                waiting += (second, first)
            case Choice(branches):
                waiting += reversed(branches)
            case Placed(body, place):
                if not (isinstance(place, int) and place >= 0):
                    raise NetError(f"the place {place!r} cannot be written: it is no number")
                waiting.append(body)
            case Star(body) | Split(body) | Feedback(body) | Ordered(body):
                waiting.append(body)
            case RecordFilter() | Sync():
                pass
            case other:
                raise TypeError(f"a net is expected, not {other!r}")


def _name(name: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*", name) or name in _RESERVED:
        raise NetError(f"the name {name!r} cannot be written")
    return name
