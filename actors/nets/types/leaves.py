"""Boxes, filters and synchrocells: the labels that they take and put out."""

from __future__ import annotations

from callboard.nets.terms.labels import Variant, matches
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
from callboard.nets.types.flows import LabelFlow, Route, RouteStep, Stuck, inherited, stuck_between

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
    """Return what becomes of a record with these labels in a leaf."""
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
    """Return what becomes of a record in a cell: it passes on, or it is merged with others.

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
