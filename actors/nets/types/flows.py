"""The way of a record through a net, by its labels alone.

A `LabelFlow` has the label sets that come out for one that goes in. `Stuck` says where it cannot go
on. Labels decide all routes but for guards, so a flow has the outputs of each guard's both ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from callboard.nets.terms.labels import Variant, is_binding
from callboard.nets.terms.network import Net


@dataclass(frozen=True, slots=True)
class RouteStep:
    """A box or a filter that a record went through, and the labels that it takes."""

    net: Net
    takes: Variant
    gives: Variant


@dataclass(frozen=True, slots=True)
class Joined:
    """One route after another: a tree, so that joining costs the same for long routes."""

    before: Route
    after: Route


Route: TypeAlias = RouteStep | Joined | None


def joined(before: Route, after: Route) -> Route:
    """Return one route after another."""
    if before is None:
        return after
    return before if after is None else Joined(before, after)


def steps_from_the_end(route: Route) -> Iterator[RouteStep]:
    """Yield the steps of a route, the last one first."""
    waiting = [route]
    while waiting:
        match waiting.pop():
            case Joined(before, after):
                waiting += (before, after)
            case RouteStep() as step:
                yield step


@dataclass(frozen=True, slots=True)
class LabelFlow:
    """The label sets that come out, and a route to each.

    `partial` are outputs for which another record is merged with this one, with the labels that are
    certain. That other record's own flow has them in full, so nothing is checked for these.
    If the flow is `open`, there may be any other output.
    """

    outputs: dict[Variant, Route] = field(default_factory=dict)
    partial: dict[Variant, Route] = field(default_factory=dict)
    open: bool = False

    def plus(self, surplus: Variant) -> LabelFlow:
        """Return the flow of a record with more labels, which no part of the net mentions."""
        if not surplus:
            return self
        return LabelFlow(
            {labels | surplus: route for labels, route in self.outputs.items()},
            {labels | surplus: route for labels, route in self.partial.items()},
            self.open,
        )

    @property
    def size(self) -> int:
        """The number of label sets that may come out."""
        return len(self.outputs) + len(self.partial)

    def variants(self) -> tuple[Variant, ...] | None:
        """Return all that may come out, or None if that is not known."""
        return None if self.open else tuple(self.outputs | self.partial)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A record that cannot go on: it has these labels at `net`, which takes the variants `wanted`.

    Each of `missing` is a set of labels with which it would go on from there. `exits` are the
    variants with which it would have left a star before.
    """

    net: Net
    labels: Variant
    wanted: tuple[Variant, ...]
    missing: tuple[Variant, ...]
    route: Route = None
    exits: tuple[Variant, ...] = ()

    def plus(self, surplus: Variant) -> Stuck:
        """Return the same for a record with more labels, which no part of the net mentions."""
        return replace(self, labels=self.labels | surplus) if surplus else self

    def after(self, route: Route) -> Stuck:
        """Return the same for a record that has come a longer way."""
        return replace(self, route=joined(route, self.route))


def total(flows: Iterable[tuple[LabelFlow, Route, bool]]) -> LabelFlow:
    """Return what comes out of several flows, each of a record that came some way.

    The last value says that the record itself was a partial one.
    """
    outputs: dict[Variant, Route] = {}
    partial: dict[Variant, Route] = {}
    is_open = False
    for flow, route, is_partial in flows:
        for labels, rest in flow.outputs.items():
            (partial if is_partial else outputs).setdefault(labels, joined(route, rest))
        for labels, rest in flow.partial.items():
            partial.setdefault(labels, joined(route, rest))
        is_open = is_open or flow.open
    return LabelFlow(outputs, {v: r for v, r in partial.items() if v not in outputs}, is_open)


def stuck_at(net: Net, labels: Variant, wanted: tuple[Variant, ...]) -> Stuck:
    """Return how a record is stuck that has none of the variants `wanted`."""
    return Stuck(net, labels, wanted, smallest(tuple(variant - labels for variant in wanted)))


def stuck_between(net: Net, labels: Variant, wanted: tuple[Variant, ...]) -> Stuck:
    """Return how a record is stuck that matches none of the variants `wanted`."""
    return Stuck(net, labels, wanted, smallest(lacking(wanted, labels)))


def lacking(wanted: tuple[Variant, ...], labels: Variant) -> tuple[Variant, ...]:
    """Return what the labels lack of each variant that no binding tag of theirs rules out."""
    bound = {label for label in labels if is_binding(label)}
    return tuple(variant - labels for variant in wanted if bound <= variant)


def smallest(sets: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Return the sets of which no other one is a part, each once, in their order."""
    kept = dict.fromkeys(sets)
    return tuple(one for one in kept if not any(other < one for other in kept))


def inherited(labels: Variant, taken: Variant) -> Variant:
    """Return the labels that flow around a box that takes some: no binding tags do."""
    return frozenset(label for label in labels if label not in taken and not is_binding(label))
