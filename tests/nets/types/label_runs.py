"""Nets at work on labels alone, from their definitions: two evaluators, and nets to try them on.

`all_ways` says all that may come of one record. `LabelRun` lets records flow one after the other,
with cells that keep them, and lets a function choose what each box puts out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator

from hypothesis import strategies as st

from callboard.nets import Net, Typed
from callboard.nets.terms.labels import Label, Variant, is_binding, matches
from callboard.nets.terms.network import (
    Box,
    Choice,
    Feedback,
    NamedNet,
    RecordFilter,
    Serial,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import BoxSignature, Item, Pattern, Rule

LABELS = ("a", "b", "c", "<s>", "<t>", "<#i>")
STEPS = 300  # of a run, after which records are left alone


class Lost(Exception):
    """A record fits nowhere."""


def outputs_of(net: Box | RecordFilter) -> list[Variant]:
    if isinstance(net, Box):
        return [frozenset(output) for output in net.signature.outputs or ()]
    return [frozenset(item.label for item in output) for output in net.rules[0].outputs]


def taken_by(net: Box | RecordFilter) -> Variant | None:
    if isinstance(net, RecordFilter):
        return net.variant
    return None if net.signature.inputs is None else frozenset(net.signature.inputs)


def results(net: Box | RecordFilter, labels: Variant) -> list[Variant]:
    if isinstance(net, RecordFilter) and net.is_identity:
        return [labels]
    taken = taken_by(net)
    if taken is None or not matches(taken, labels):
        raise Lost(net, labels)
    surplus = {label for label in labels - taken if not is_binding(label)}
    return [output | surplus for output in outputs_of(net)]


def branch_for(typed: Typed, labels: Variant) -> Typed:
    best: tuple[int, Typed] | None = None
    branches = [branch for branch in typed.children if branch.inputs]
    if len(branches) == 1:
        return branches[0]
    for branch in branches:
        for variant in branch.inputs:
            if matches(variant, labels) and (best is None or len(variant) > best[0]):
                best = len(variant), branch
    if best is None:
        raise Lost(typed.net, labels)
    return best[1]


def any_matches(patterns: Iterable[Pattern], labels: Variant) -> bool:
    return any(matches(pattern.variant, labels) for pattern in patterns)


def all_ways(typed: Typed, labels: Variant) -> set[Variant]:
    """Return the label sets that may come out, with all others there that a cell waits for."""
    match typed.net:
        case Box() | RecordFilter() as leaf:
            return set(results(leaf, labels))
        case Sync(patterns):
            if not matches(patterns[0].variant, labels):
                return {labels}
            return {labels, labels.union(*(pattern.variant for pattern in patterns))}
        case Choice():
            return all_ways(branch_for(typed, labels), labels)
        case Star(exits=patterns) | Feedback(backs=patterns):
            leaves_if_match = isinstance(typed.net, Star)
            found, seen, waiting = set(), set(), [labels]
            while waiting:
                one = waiting.pop()
                if any_matches(patterns, one) == leaves_if_match:
                    found.add(one)
                elif one not in seen:
                    seen.add(one)
                    waiting += all_ways(typed.children[0], one)
            return found
        case Split(tag=tag) if tag not in labels:
            raise Lost(typed.net, labels)
        case _:
            found = {labels}
            for child in typed.children:
                found = {end for one in found for end in all_ways(child, one)}
            return found


class LabelRun:
    """A run: the cells with what they keep, by the way to them."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose  # which output, of so many
        self._steps = 0
        self._cells: dict[Hashable, dict[int, Variant]] = defaultdict(dict)
        self.chosen: set[int] = set()  # the branches that got a record, by their identity

    def send(self, typed: Typed, labels: Variant, way: tuple[Hashable, ...] = ()) -> list[Variant]:
        match typed.net:
            case Box() | RecordFilter() as leaf:
                made = results(leaf, labels)
                if isinstance(leaf, Box) and made:
                    return [made[self._choose(len(made))]]
                return made
            case Sync(patterns):
                return self._kept(patterns, labels, way)
            case Choice():
                branch = branch_for(typed, labels)
                self.chosen.add(id(branch))
                return self.send(branch, labels, (*way, typed.children.index(branch)))
            case Star(exits=exits):
                return self._unfolded(typed, exits, labels, way, 0)
            case Feedback(backs=backs):
                return self._fed_back(typed, backs, labels, way)
            case Split(tag=tag):
                if tag not in labels:
                    raise Lost(typed.net, labels)
                return self.send(typed.children[0], labels, (*way, self._choose(2)))
            case _:
                found = [labels]
                for index, child in enumerate(typed.children):
                    found = [e for one in found for e in self.send(child, one, (*way, index))]
                return found

    def _kept(
        self, patterns: tuple[Pattern, ...], labels: Variant, way: tuple[Hashable, ...]
    ) -> list[Variant]:
        kept = self._cells[way]
        fits = [
            index
            for index, pattern in enumerate(patterns)
            if index not in kept and matches(pattern.variant, labels)
        ]
        if not fits:
            return [labels]
        for index in fits:
            kept[index] = labels
        if len(kept) < len(patterns):
            return []
        return [kept[0].union(*(pattern.variant for pattern in patterns))]

    def _unfolded(
        self,
        typed: Typed,
        exits: tuple[Pattern, ...],
        labels: Variant,
        way: tuple[Hashable, ...],
        stage: int,
    ) -> list[Variant]:
        if any_matches(exits, labels):
            return [labels]
        if self._is_over():
            return []
        ends = self.send(typed.children[0], labels, (*way, stage))
        return [e for one in ends for e in self._unfolded(typed, exits, one, way, stage + 1)]

    def _fed_back(
        self, typed: Typed, backs: tuple[Pattern, ...], labels: Variant, way: tuple[Hashable, ...]
    ) -> list[Variant]:
        if not any_matches(backs, labels):
            return [labels]
        if self._is_over():
            return []
        ends = self.send(typed.children[0], labels, way)
        return [e for one in ends for e in self._fed_back(typed, backs, one, way)]

    def _is_over(self) -> bool:
        self._steps += 1
        return self._steps > STEPS


def parts(typed: Typed) -> Iterator[Typed]:
    """Yield a net and all its parts."""
    yield typed
    for child in typed.children:
        yield from parts(child)


def _ordered(variant: Variant) -> tuple[Label, ...]:
    return tuple(sorted(variant))


def _filter(taken: Variant, outputs: list[Variant]) -> RecordFilter:
    items = tuple(
        tuple(Item(label) for label in _ordered(output) if label in taken or "<" in label)
        for output in outputs
    )
    return RecordFilter(taken, (Rule(items),))


def _box(taken: Variant, outputs: list[Variant]) -> Box:
    name = f"({taken and ''.join(_ordered(taken))})"
    return Box(name, BoxSignature(_ordered(taken), tuple(map(_ordered, outputs))))


def nets_of(labels: tuple[Label, ...]) -> st.SearchStrategy[Net]:
    """Draw nets without guards and open outputs: every type error is about labels that meet."""
    variants = st.frozensets(st.sampled_from(labels), max_size=3)
    some_variants = st.lists(variants, max_size=2, unique=True)
    patterns = st.lists(variants.map(Pattern), min_size=1, max_size=2, unique=True).map(tuple)
    leaves = st.one_of(
        st.builds(_box, variants, some_variants),
        st.builds(_filter, variants, some_variants),
        st.just(RecordFilter()),
        st.builds(Sync, st.lists(variants.map(Pattern), min_size=2, max_size=3).map(tuple)),
    )

    def combined(inner: st.SearchStrategy[Net]) -> st.SearchStrategy[Net]:
        return st.one_of(
            st.builds(Serial, inner, inner),
            st.builds(Serial, inner, inner),
            st.builds(Choice, st.lists(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(Star, inner, patterns),
            st.builds(Feedback, inner, patterns),
            st.builds(Split, inner, st.sampled_from([each for each in labels if "#" not in each])),
            st.builds(NamedNet, st.just("n"), inner),
        )

    return st.recursive(leaves, combined, max_leaves=6)


nets = nets_of(LABELS)
