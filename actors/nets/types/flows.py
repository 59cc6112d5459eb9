"""The path of a record through a net, by its labels only.

A `LabelFlow` has the label sets that come out for one that goes in. `Stuck` says where it cannot go
on. Labels decide all routes but for guards, so a flow has the outputs of each guard's both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from callboard.nets.terms.labels import Label, Variant, is_binding, matches
from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    NamedNet,
    Net,
    RecordFilter,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import Pattern


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
    """A stuck record: it has these labels at `net`, which only accepts the variants `wanted`.

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
        """Return the same for a record that has come by a longer path."""
        return replace(self, route=joined(route, self.route))


def total(flows: Iterable[tuple[LabelFlow, Route, bool]]) -> LabelFlow:
    """Merge several flows, each of a record that came some way.

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
    """Return the labels missing for each variant that no binding tag rules out."""
    bound = {label for label in labels if is_binding(label)}
    return tuple(variant - labels for variant in wanted if bound <= variant)


def smallest(sets: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Return the sets that contain no other of them, each once, in order."""
    kept = dict.fromkeys(sets)
    return tuple(one for one in kept if not any(other < one for other in kept))


def inherited(labels: Variant, taken: Variant) -> Variant:
    """Return the labels that flow around a box that takes some: no binding tags do."""
    return frozenset(label for label in labels if label not in taken and not is_binding(label))


ERROR: Variant = frozenset(("error",))  # of a box that puts its errors out


def box_outputs(box: Box) -> tuple[Variant, ...] | None:
    """Return a box's output type, with that of its errors. None: it is open."""
    if box.signature.outputs is None:
        return None
    outputs = tuple(map(frozenset, box.signature.outputs))
    return (*outputs, ERROR) if box.options.errors == "variant" else outputs


def filter_outputs(net: RecordFilter) -> tuple[Variant, ...]:
    """Return a filter's output type: that of each rule until one without a guard."""
    outputs: dict[Variant, None] = {}
    for rule in net.rules:
        outputs |= dict.fromkeys(frozenset(item.label for item in out) for out in rule.outputs)
        if rule.guard is None:
            break
    return tuple(outputs)


def variants_of(patterns: tuple[Pattern, ...]) -> tuple[Variant, ...]:
    """Return the patterns' variants."""
    return tuple(pattern.variant for pattern in patterns)


def leaf_variants(net: Net) -> tuple[Variant, ...]:
    """Return a leaf's input type."""
    match net:
        case Box(signature=signature):
            return () if signature.inputs is None else (frozenset(signature.inputs),)
        case RecordFilter(variant=variant):
            return (variant,)
        case Sync(patterns):
            return tuple(dict.fromkeys(variants_of(patterns)))
        case _:
            return ()


def leaf_flow(net: Box | RecordFilter | Sync, labels: Variant) -> LabelFlow | Stuck:
    """Return the flow of a record with these labels through a leaf."""
    if isinstance(net, Sync):
        return _kept(net, labels)
    if isinstance(net, RecordFilter) and net.is_identity:
        return LabelFlow({labels: None})
    variants = leaf_variants(net)
    if not any(matches(variant, labels) for variant in variants):
        return stuck_between(net, labels, variants)
    outputs = box_outputs(net) if isinstance(net, Box) else filter_outputs(net)
    if outputs is None:
        return LabelFlow(open=True)
    surplus = inherited(labels, variants[0])
    given: dict[Variant, Route] = {
        out | surplus: RouteStep(net, variants[0], out) for out in outputs
    }
    return LabelFlow(given)


def labels_mentioned(net: Net) -> Variant:
    """Return the labels that a term itself has, without its parts."""
    variants = list(leaf_variants(net))
    match net:
        case Box():
            variants += box_outputs(net) or ()
        case RecordFilter():
            variants += filter_outputs(net)
        case Star(exits=patterns) | Feedback(backs=patterns):
            variants += variants_of(patterns)
        case Split(tag=tag):
            variants.append(frozenset((tag,)))
        case NamedNet(signature=signature) if signature is not None:
            for mapping in signature.mappings:
                variants += (*mapping.inputs, *(mapping.outputs or ()))
        case Choice():
            pass
    return frozenset[str]().union(*variants)


def _kept(net: Sync, labels: Variant) -> LabelFlow:
    """Return the flow of a record through a cell: it passes, or is merged with others.

    The merged record has all labels of the first pattern's record, so that record's flow has it.
    A record that matches no pattern passes on.
    """
    first, *others = variants_of(net.patterns)
    merged = labels.union(first, *others)
    if matches(first, labels):
        return LabelFlow({labels: None, merged: None})
    if any(matches(variant, labels) for variant in others):
        return LabelFlow({labels: None}, {merged: None})
    return LabelFlow({labels: None})


Group = tuple[Variant, ...]


@dataclass(slots=True)
class Facts:
    """A term's input type, and the flows through it that are known so far.

    An input group is a variant that a leaf takes, with what the nets behind it need besides. Where
    they can be content with different labels, the group has several variants, of which one will do.
    """

    net: Net
    parts: tuple[Facts, ...]
    mentioned: Variant
    groups: tuple[Group, ...] = ()
    at_start: LabelFlow = field(default_factory=LabelFlow)  # the outputs of initialisers in it
    made: Variant | None = None  # the labels that anything in it may produce, if they are known
    unchecked: bool = False  # it is too large to be checked
    flows: dict[Variant, LabelFlow | Stuck] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Variant, ...]:
        """The input type: none marks an initialiser."""
        return tuple(dict.fromkeys(variant for group in self.groups for variant in group))


def unguarded(patterns: tuple[Pattern, ...]) -> tuple[Variant, ...]:
    """Return the variants of the patterns that match by labels alone."""
    return tuple(pattern.variant for pattern in patterns if pattern.guard is None)


def ways(net: Star | Feedback, labels: Variant) -> tuple[bool, bool]:
    """Tell whether a record may leave, and whether it may go into the body. A guard may be true."""
    patterns = net.exits if isinstance(net, Star) else net.backs
    hits = [pattern.guard is None for pattern in patterns if matches(pattern.variant, labels)]
    certain, possible = any(hits), bool(hits)
    if isinstance(net, Star):
        return possible, not certain
    return not certain, possible


def looped(
    facts: Facts, body: Callable[[Variant], LabelFlow | Stuck], arriving: LabelFlow, most: int
) -> LabelFlow | Stuck:
    """Return the flow out of a star or a feedback. With more than `most` label sets it is open."""
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
    """Add the labels that would have let a record out of a star to those that are missing.

    A record that has come out of the body is not meant to have had the body's own outputs before.
    """
    net = facts.net
    if not isinstance(net, Star):
        return stuck
    exits = unguarded(net.exits)
    made = frozenset[Label]() if arrives else facts.parts[0].made or frozenset()
    missing = [more for more in lacking(exits, labels) if not more & made]
    return replace(stuck, missing=smallest((*stuck.missing, *missing)), exits=stuck.exits + exits)
