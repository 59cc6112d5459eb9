"""Paths of the parts of a net."""

from __future__ import annotations

from dataclasses import dataclass

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

MOST_OF_A_TEXT = 40  # letters of a filter or a cell in a path


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a net, with its path and its own parts."""

    net: Net
    path: str
    parts: tuple[Place, ...]


def places_in(net: Net) -> Place:
    """Return the tree of a net's places.

    A path has the names on the way, of nets and boxes, and a filter's or cell's text: `/fib/sum`.
    A combinator adds nothing to it. The second place of one path gets `:2`, and so on.
    """
    return _place(net, "", {})


def parts_of(net: Net) -> tuple[Net, ...]:
    """Return the nets that a net is made of. A serial composition's are its factors, flattened."""
    match net:
        case Serial():
            return tuple(_factors(net))
        case Choice(branches):
            return branches
        case Star(body) | Split(body) | Feedback(body) | Ordered(body) | Placed(body):
            return (body,)
        case NamedNet(_, body):
            return (body,)
        case _:
            return ()


def text_in_short(net: Net) -> str:
    """Return a name, or the beginning of a net's text."""
    text = str(net)
    return text if len(text) <= MOST_OF_A_TEXT else f"{text[: MOST_OF_A_TEXT - 1]}…"


def _place(net: Net, prefix: str, taken: dict[str, int]) -> Place:
    path = prefix
    if isinstance(net, (Box, RecordFilter, Sync, NamedNet)):
        path = f"{prefix}/{text_in_short(net)}"
        taken[path] = taken.get(path, 0) + 1
        if taken[path] > 1:
            path = f"{path}:{taken[path]}"
    parts = tuple(_place(part, path, taken) for part in parts_of(net))
    return Place(net, path or "/", parts)


def _factors(net: Net) -> list[Net]:
    # A pipeline of a thousand boxes is a thousand deep: no recursion.
    found: list[Net] = []
    waiting = [net]
    while waiting:
        match waiting.pop():
            case Serial(first, second):
                waiting += (second, first)
            case other:
                found.append(other)
    return found
