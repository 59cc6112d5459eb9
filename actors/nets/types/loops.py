"""Stars and feedbacks: all that a record becomes on its way through body after body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from callboard.nets.terms.labels import Label, Variant, matches
from callboard.nets.terms.network import Feedback, Star
from callboard.nets.terms.patterns import Pattern
from callboard.nets.types.facts import Facts
from callboard.nets.types.flows import LabelFlow, Route, Stuck, joined, lacking, smallest


def unguarded(patterns: tuple[Pattern, ...]) -> tuple[Variant, ...]:
    """Return the variants of the patterns that match by labels alone."""
    return tuple(pattern.variant for pattern in patterns if pattern.guard is None)


def ways(net: Star | Feedback, labels: Variant) -> tuple[bool, bool]:
    """Say whether a record may leave, and whether it may go into the body. A guard may be true."""
    patterns = net.exits if isinstance(net, Star) else net.backs
    hits = [pattern.guard is None for pattern in patterns if matches(pattern.variant, labels)]
    certain, possible = any(hits), bool(hits)
    if isinstance(net, Star):
        return possible, not certain
    return not certain, possible


def looped(
    facts: Facts, body: Callable[[Variant], LabelFlow | Stuck], arriving: LabelFlow, most: int
) -> LabelFlow | Stuck:
    """Return what leaves a star or a feedback. With more than `most` label sets it is open."""
    net = facts.net
    assert isinstance(net, (Star, Feedback))
    outputs: dict[Variant, Route] = {}
    partial: dict[Variant, Route] = {}
    is_open = arriving.open
    entered: set[Variant] = set()
    waiting = [(labels, route) for labels, route in reversed(arriving.outputs.items())]
    # Partial records come last: if a full one has the same labels, it counts for more.
    waiting_partial = list(arriving.partial.items())
    while waiting or waiting_partial:
        is_partial = not waiting
        labels, route = (waiting or waiting_partial).pop()
        leaves, enters = ways(net, labels)
        if leaves:
            (partial if is_partial else outputs).setdefault(labels, route)
        if not enters or labels in entered:
            continue
        entered.add(labels)
        if len(entered) + len(outputs) + len(partial) > most:
            return LabelFlow(open=True)
        flow = body(labels)
        if isinstance(flow, Stuck):
            if is_partial:
                continue
            arrives = labels in arriving.outputs
            return _unless_out(flow, facts, labels, arrives=arrives).after(route)
        is_open = is_open or flow.open
        new = [(more, joined(route, rest)) for more, rest in flow.outputs.items()]
        (waiting_partial if is_partial else waiting).extend(new)
        waiting_partial += [(more, joined(route, rest)) for more, rest in flow.partial.items()]
    certain = {v: r for v, r in partial.items() if v not in outputs}
    return LabelFlow(outputs, certain, is_open)


def _unless_out(stuck: Stuck, facts: Facts, labels: Variant, *, arrives: bool) -> Stuck:
    """Add to what is missing in a star what would have let the record out before.

    A record that has come out of the body is not meant to have had the body's own outputs before.
    """
    net = facts.net
    if not isinstance(net, Star):
        return stuck
    exits = unguarded(net.exits)
    made = frozenset[Label]() if arrives else facts.parts[0].made or frozenset()
    missing = [more for more in lacking(exits, labels) if not more & made]
    return replace(stuck, missing=smallest((*stuck.missing, *missing)), exits=stuck.exits + exits)
