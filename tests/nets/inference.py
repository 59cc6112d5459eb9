"""The types of nets, inferred by label sets from the definitions: the oracle routes by them.

An arrow is a variant that a net accepts, and the variants that come of it: None if they are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from callboard.nets.errors import NetTypeError
from callboard.nets.terms.expressions import tags_of
from callboard.nets.terms.labels import Label, Variant, is_binding, matches, text_of, text_of_type
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

Outputs: TypeAlias = frozenset[Variant] | None
Arrow: TypeAlias = tuple[Variant, Outputs]

IDENTITY = RecordFilter()


def inputs_of(net: Net) -> list[Variant]:
    """Return the variants that a net accepts."""
    return [variant for variant, _ in arrows(net)]


def arrows(net: Net) -> list[Arrow]:
    """Return the type of a net."""
    match net:
        case Box(_, signature, _, options):
            if signature.inputs is None:
                return []
            outputs = typed(signature.outputs)
            if outputs is not None and options.errors == "variant":
                outputs |= {frozenset({"error"})}
            return [(frozenset(signature.inputs), outputs)]
        case RecordFilter(variant, rules):
            items = [output for rule in rules for output in rule.outputs]
            return [(variant, frozenset(frozenset(item.label for item in out) for out in items))]
        case Sync(patterns):
            whole = frozenset[Label]().union(*(pattern.variant for pattern in patterns))
            return [(part.variant, frozenset((part.variant, whole))) for part in patterns]
        case Serial():
            first, *others = [part for part in factors(net) if not is_identity(part)] or [IDENTITY]
            types = arrows(first)
            for factor in others:
                types = [made for arrow in types for made in followed(arrow, factor, net)]
            return types
        case Choice(branches):
            return [arrow for branch in branches for arrow in arrows(branch)]
        case Star(body, exits):
            return star_arrows(net, arrows(body), exits)
        case Split(body, tag):
            return [split_arrow(arrow, tag) for arrow in arrows(body)]
        case Feedback(body, backs):
            return feedback_arrows(net, arrows(body), backs)
        case NamedNet(_, body, signature):
            if signature is None:
                return arrows(body)
            return [
                (variant, typed(mapping.outputs))
                for mapping in signature.mappings
                for variant in mapping.inputs
            ]
        case Ordered(body) | Placed(body):
            return arrows(body)
    raise AssertionError(f"no such net: {net!r}")


def typed(outputs: Iterable[Iterable[Label]] | None) -> Outputs:
    return None if outputs is None else frozenset(map(frozenset, outputs))


def after(labels: Variant, followers: Iterable[Arrow]) -> Outputs:
    """Return what comes of a record with these labels, by best match. There is a match."""
    fitting = [arrow for arrow in followers if matches(arrow[0], labels)]
    most = max(len(variant) for variant, _ in fitting)
    found: set[Variant] = set()
    for variant, outputs in fitting:
        if len(variant) == most:
            if outputs is None:
                return None
            found |= {output | surplus(labels, variant) for output in outputs}
    return frozenset(found)


def surplus(labels: Variant, variant: Variant) -> Variant:
    """Return the labels that outputs inherit."""
    return frozenset(label for label in labels - variant if not is_binding(label))


def needs(arrow: Arrow, targets: Iterable[Variant], where: object) -> list[Variant]:
    """Return the smallest sets of labels with which every output of an arrow fits a target."""
    consumed, outputs = arrow
    targets = list(targets)
    found = [consumed]
    for output in outputs or ():
        ways = [target - output for target in targets if fits(output, consumed, target)]
        if not ways:
            raise NetTypeError(f"{where}: {text_of(output)} against {text_of_type(targets)}")
        found = smallest(labels | way for labels in found for way in ways)
    return found


def fits(output: Variant, consumed: Variant, target: Variant) -> bool:
    """Tell whether inherited labels can make a target of an output. Consumed ones are not there."""
    missing = target - output
    return (
        not missing & consumed
        and not any(map(is_binding, missing))
        and matches(target, output | missing)
    )


def smallest(variants: Iterable[Variant]) -> list[Variant]:
    """Return the variants of which none has all the labels of another, each once."""
    once = list(dict.fromkeys(variants))
    return [variant for variant in once if not any(other < variant for other in once)]


def factors(net: Net) -> list[Net]:
    """Return the factors of serial compositions, however they are nested."""
    match net:
        case Serial(first, second):
            return [*factors(first), *factors(second)]
        case NamedNet(_, body, None) | Ordered(body) | Placed(body):
            return factors(body)
    return [net]


def is_identity(net: Net) -> bool:
    return isinstance(net, RecordFilter) and net.is_identity


def followed(arrow: Arrow, net: Net, where: object) -> Iterator[Arrow]:
    """Yield what an arrow becomes with a net behind it. A cell takes everything."""
    consumed, outputs = arrow
    if isinstance(net, Sync):
        yield consumed, outputs and frozenset(out for one in outputs for out in kept(net, one))
        return
    followers = arrows(net)
    for labels in needs(arrow, [variant for variant, _ in followers], where):
        found: set[Variant] = set()
        ends = [after(output | (labels - consumed), followers) for output in outputs or ()]
        for end in ends:
            found |= end or frozenset()
        yield labels, None if outputs is None or None in ends else frozenset(found)


def kept(net: Sync, labels: Variant) -> Iterator[Variant]:
    """Yield what comes of a label set in a cell: itself, and if it matches, what is merged."""
    yield labels
    if any(matches(pattern.variant, labels) for pattern in net.patterns):
        yield labels.union(*(pattern.variant for pattern in net.patterns))


def split_arrow(arrow: Arrow, tag: Label) -> Arrow:
    """Return an arrow of a split: the tag has to be there, and is inherited if it is not read."""
    variant, outputs = arrow
    extra = surplus(frozenset((tag,)), variant)
    return variant | {tag}, outputs and frozenset(output | extra for output in outputs)


def star_arrows(net: Star, body: list[Arrow], exits: tuple[Pattern, ...]) -> list[Arrow]:
    """Return the type of a star.

    Each output of the body has to match an exit without a guard, or to be accepted once more.
    """
    sure = [pattern.variant for pattern in exits if pattern.guard is None]
    required = repeated(body, lambda inputs: [*sure, *inputs], net)
    leaves = [pattern.variant for pattern in exits]
    return [
        *((variant, frozenset((variant,))) for variant in sure),
        *(
            (
                variant,
                leaving(
                    variant,
                    body,
                    lambda labels: any(matches(leave, labels) for leave in leaves),
                    lambda labels: not any(matches(leave, labels) for leave in sure),
                ),
            )
            for variant in required
        ),
    ]


def feedback_arrows(net: Feedback, body: list[Arrow], backs: tuple[Pattern, ...]) -> list[Arrow]:
    """Return the type of a feedback: outputs of the body that go back have to be accepted."""
    sure = [pattern.variant for pattern in backs if pattern.guard is None]
    maybe = [pattern.variant for pattern in backs]
    back: list[Arrow] = [
        (variant, frozenset(o for o in outputs if any(matches(b, o) for b in maybe)))
        if outputs is not None
        else (variant, None)
        for variant, outputs in body
    ]
    required = repeated(back, lambda inputs: inputs, net)
    return [
        (
            variant,
            leaving(
                variant,
                body,
                lambda labels: not any(matches(pattern, labels) for pattern in sure),
                lambda labels: any(matches(pattern, labels) for pattern in maybe),
            ),
        )
        for variant in required
    ]


def repeated(
    body: list[Arrow], targets: Callable[[list[Variant]], list[Variant]], where: object
) -> list[Variant]:
    """Return what a body accepts if its outputs come to it again: the least labels that suffice."""
    required = [[variant] for variant, _ in body]
    while True:
        inputs = list(dict.fromkeys(variant for variants in required for variant in variants))
        found = [needs(arrow, targets(inputs), where) for arrow in body]
        if found == required:
            return inputs
        required = found


def leaving(
    labels: Variant,
    body: list[Arrow],
    leaves: Callable[[Variant], bool],
    goes_on: Callable[[Variant], bool],
) -> Outputs:
    """Return the label sets that leave a loop into which records with these labels come."""
    todo, seen, found = [labels], set[Variant](), set[Variant]()
    while todo:
        now = todo.pop()
        if now in seen:
            continue
        seen.add(now)
        if leaves(now):
            found.add(now)
        if goes_on(now):
            further = after(now, body)
            if further is None:
                return None
            todo += further
    return frozenset(found)


def labels_of(net: Net) -> frozenset[Label]:
    """Return all labels that a net mentions."""
    return frozenset(mentioned(net))


def mentioned(net: Net) -> Iterator[Label]:
    match net:
        case Box(_, signature):
            yield from signature.inputs or ()
            for output in signature.outputs or ():
                yield from output
        case RecordFilter(variant, rules):
            yield from variant
            for rule in rules:
                yield from tags_of(rule.guard)
                for item in (item for output in rule.outputs for item in output):
                    yield item.label
                    yield from [item.source] if item.source else []
                    yield from tags_of(item.value)
        case Sync(patterns):
            yield from labels_of_patterns(patterns)
        case Serial(first, second):
            yield from mentioned(first)
            yield from mentioned(second)
        case Choice(branches):
            for branch in branches:
                yield from mentioned(branch)
        case Star(body, patterns) | Feedback(body, patterns):
            yield from mentioned(body)
            yield from labels_of_patterns(patterns)
        case Split(body, tag):
            yield tag
            yield from mentioned(body)
        case NamedNet(_, body, signature):
            yield from mentioned(body)
            for mapping in signature.mappings if signature else ():
                for variant in (*mapping.inputs, *(mapping.outputs or ())):
                    yield from variant
        case Ordered(body) | Placed(body):
            yield from mentioned(body)


def labels_of_patterns(patterns: Iterable[Pattern]) -> Iterator[Label]:
    for pattern in patterns:
        yield from pattern.variant
        yield from tags_of(pattern.guard)
