"""Nets on label sets alone: what may come out for a record with these labels, and whether it fits.

The interpreter knows values, and types know no surplus. This is between them: drawn nets are kept
only if each label set that can reach a place fits there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from callboard.nets.terms.labels import Variant, matches
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
from callboard.nets.terms.patterns import Pattern
from tests.nets.inference import Outputs, arrows, inputs_of, surplus


class Unfit(Exception):
    """A label set reaches a place where it does not fit."""


def leaving(net: Net, arriving: Iterable[Variant]) -> frozenset[Variant]:
    """Return the label sets that may leave a net into which these come."""
    return frozenset(out for labels in arriving for out in flow(net, labels))


def flow(net: Net, labels: Variant) -> frozenset[Variant]:
    """Return the label sets that may come of a record with these labels, in whatever state."""
    match net:
        case RecordFilter() if net.is_identity:
            return frozenset((labels,))
        case Box() | RecordFilter():
            return made(arrows(net), labels)
        case Sync(patterns):
            whole = labels.union(*(pattern.variant for pattern in patterns))
            is_first = matches(patterns[0].variant, labels)
            return frozenset((labels, whole) if is_first else (labels,))
        case Serial(first, second):
            return leaving(second, flow(first, labels))
        case Choice(branches):
            sizes = [(size_of_match(branch, labels), branch) for branch in branches]
            best = max(size for size, _ in sizes)
            if best < 0:
                raise Unfit
            return frozenset(
                out for size, branch in sizes if size == best for out in flow(branch, labels)
            )
        case Star(body, exits):
            sure = without_guards(exits)
            return around(
                body, labels, lambda now: fits(exits, now), lambda now: not fits(sure, now)
            )
        case Feedback(body, backs):
            sure = without_guards(backs)
            return around(
                body, labels, lambda now: not fits(sure, now), lambda now: fits(backs, now)
            )
        case Split(body, tag):
            if tag not in labels:
                raise Unfit
            return flow(body, labels)
        case Ordered(body) | Placed(body) | NamedNet(_, body):
            return flow(body, labels)
    raise AssertionError(f"no such net: {net!r}")


def made(types: list[tuple[Variant, Outputs]], labels: Variant) -> frozenset[Variant]:
    """Return what a box or a filter, which has one arrow, makes of a label set."""
    ((variant, outputs),) = types
    if outputs is None or not matches(variant, labels):
        raise Unfit
    return frozenset(output | surplus(labels, variant) for output in outputs)


def size_of_match(net: Net, labels: Variant) -> int:
    """Return the size of the largest variant of a net that matches, or -1."""
    return max((len(part) for part in inputs_of(net) if matches(part, labels)), default=-1)


def without_guards(patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return tuple(pattern for pattern in patterns if pattern.guard is None)


def fits(patterns: tuple[Pattern, ...], labels: Variant) -> bool:
    """Tell whether a label set matches a pattern, for some values."""
    return any(matches(pattern.variant, labels) for pattern in patterns)


def around(
    body: Net, labels: Variant, leaves: Callable[[Variant], bool], stays: Callable[[Variant], bool]
) -> frozenset[Variant]:
    """Follow label sets around a loop: those that may leave, and those that may stay."""
    todo, seen, out = [labels], set[Variant](), set[Variant]()
    while todo:
        now = todo.pop()
        if now in seen:
            continue
        seen.add(now)
        if leaves(now):
            out.add(now)
        if stays(now):
            todo += flow(body, now)
    return frozenset(out)
