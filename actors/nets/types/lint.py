"""`lint`, which finds branches of choices that get no records, since ties go to an earlier branch.

A set of labels here stands for all records that have at least these; they may have others, also
from outside. So a finding holds for every record that the types allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from callboard.nets.terms.labels import Label, Variant, is_binding
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
from callboard.nets.types.flows import (
    box_outputs,
    filter_outputs,
    inherited,
    labels_mentioned,
    unguarded,
    variants_of,
)
from callboard.nets.types.messages import Messages
from callboard.nets.types.places import places_in
from callboard.nets.types.typed import Typed, infer

MOST_MATCHES = 20_000  # of a branch with a set of labels, after which the search ends

# The labels of records, and whether a box or a filter of the net has put them out.
Arrival: TypeAlias = tuple[Variant, bool]


def lint(net: Net) -> list[str]:
    """Report which branches of a net's choices can get no records, as far as types prove it.

    Records that fit such a branch also fit an earlier one, which gets them. Raises NetTypeError
    if the parts of the net do not fit together.
    """
    typed = infer(net)
    messages = Messages(places_in(net))
    return [
        messages.starved(tie.branch.net, tie.winner.net, tie.at, is_certain=is_certain)
        for tie, is_certain in starved_branches(typed)
    ]


@dataclass(frozen=True, slots=True)
class Tie:
    """Records with the labels `at` match a branch, and as well an earlier one, which gets them."""

    branch: Typed
    winner: Typed
    at: Variant


def starved_branches(net: Typed) -> Iterator[tuple[Tie, bool]]:
    """Yield ties by which a branch gets no records, though they fit it.

    The flag says that this holds for all records. Otherwise the branch gets no record by labels
    that boxes and filters have produced: neither at first, nor until it has had one from outside.
    """
    parts = [net]
    for part in parts:
        parts += part.children
    if any(is_binding(label) for part in parts for label in labels_mentioned(part.net)):
        return
    choices = [part for part in parts if isinstance(part.net, Choice) and part.net.ties == "first"]
    if not choices:
        return
    taken = frozenset[Label]().union(*(_labels_taken(part) for part in parts))
    budget = MatchBudget()
    with suppress(TooMuch):
        ways = Ways(net, taken, budget)
        for branch in (branch for choice in choices for branch in choice.children):
            seen = ways.seen_at(branch)
            if seen.ties and not seen.is_chosen:
                yield seen.ties[0], True
            elif seen.inner_ties:
                seen = Ways(net, taken, budget, without=branch).seen_at(branch)
                if seen.inner_ties and not seen.is_chosen_inside:
                    yield seen.inner_ties[0], False


class TooMuch(Exception):
    """The budget is used up."""


@dataclass(slots=True)
class MatchBudget:
    """The number of matches that are left."""

    left: int = MOST_MATCHES

    def use(self, number: int) -> None:
        """Use some of it."""
        self.left -= number
        if self.left < 0:
            raise TooMuch


@dataclass(slots=True)
class Seen:
    """Whether a branch gets records, and how it loses others. Inside: by the net's own labels."""

    is_chosen: bool = False
    is_chosen_inside: bool = False
    ties: list[Tie] = field(default_factory=list)
    inner_ties: list[Tie] = field(default_factory=list)


class Ways:
    """The ways of all records through a net. Nothing comes out of the branch `without`.

    Labels that are not in `taken` are left out: no place in the net asks for them.
    """

    def __init__(
        self,
        net: Typed,
        taken: Variant,
        budget: MatchBudget,
        *,
        without: Typed | None = None,
    ) -> None:
        self._taken = taken
        self._budget = budget
        self._without = without
        self._seen: dict[int, Seen] = {}  # by the branch's identity
        self._outputs: dict[tuple[int, Arrival], set[Arrival]] = {}
        self._started: dict[int, set[Arrival]] = {}
        self._through(net, {(frozenset(), False)})

    def seen_at(self, branch: Typed) -> Seen:
        """Return the records that came to a branch."""
        return self._seen.setdefault(id(branch), Seen())

    def _through(self, typed: Typed, arrivals: Iterable[Arrival]) -> set[Arrival]:
        """Return the outputs for these, and those of initialisers at the start."""
        if typed is self._without:
            return set()
        found = set(self._at_start(typed))
        for arrival in arrivals:
            known = self._outputs.get((id(typed), arrival))
            if known is None:
                self._budget.use(1)
                known = self._outputs[id(typed), arrival] = self._come(typed, *arrival)
            found |= known
        return found

    def _come(self, typed: Typed, labels: Variant, made: bool) -> set[Arrival]:
        match typed.net:
            case Box() as box:
                return self._put_out(box_outputs(box), labels, box.signature.inputs or ())
            case RecordFilter() as net if not net.is_identity:
                return self._put_out(filter_outputs(net), labels, net.variant)
            case RecordFilter():
                return {(labels, made)}
            case Sync(patterns):
                return {(labels, made), (frozenset().union(*variants_of(patterns)), made)}
            case Choice():
                return self._chosen(typed, labels, made)
            case Star() | Feedback():
                return self._looped(typed, {(labels, made)})
            case Split(tag=tag):
                labels |= {tag}
            case NamedNet(signature=signature) if signature is not None:
                arriving = {(labels | variant, made) for variant in signature.inputs}
                return self._through(typed.children[0], arriving)
        return self._along(typed, {(labels, made)})

    def _along(self, typed: Typed, flow: set[Arrival]) -> set[Arrival]:
        for child in typed.children:
            flow = self._through(child, flow)
        return flow

    def _at_start(self, typed: Typed) -> set[Arrival]:
        """Return the outputs that follow from those of initialisers."""
        known = self._started.get(id(typed))
        if known is None:
            match typed.net:
                case Box() as box if box.signature.inputs is None:
                    known = self._put_out(box_outputs(box), frozenset(), ())
                case Choice():
                    known = {each for child in typed.children for each in self._at_start(child)}
                case Star() | Feedback():
                    known = self._looped(typed, self._at_start(typed.children[0]))
                case _:
                    known = self._along(typed, set())
            self._started[id(typed)] = known
        return known

    def _chosen(self, typed: Typed, labels: Variant, made: bool) -> set[Arrival]:
        """Send records into each branch that gets any of them."""
        found: set[Arrival] = set()
        is_fair = isinstance(typed.net, Choice) and typed.net.ties == "fair"
        branches = [child for child in typed.children if child.inputs]
        if len(branches) == 1 < len(typed.children):
            return self._through(branches[0], {(labels, made)})
        for branch in branches:
            for variant in branch.inputs:
                self._budget.use(len(branches))
                at, inside = labels | variant, made and variant <= labels
                seen = self.seen_at(branch)
                winner, is_tied = _best_for(at, branches, branch)
                if branch is winner or (is_tied and is_fair):
                    seen.is_chosen = True
                    seen.is_chosen_inside |= inside
                    found |= self._through(branch, {(at, made)})
                elif is_tied and (variant <= labels or variant in winner.inputs):
                    # No further label decides: all of the records have it, or none.
                    seen.ties.append(Tie(branch, winner, at))
                    if inside:
                        seen.inner_ties.append(seen.ties[-1])
        return found

    def _put_out(
        self, outputs: tuple[Variant, ...] | None, labels: Variant, inputs: Iterable[Label]
    ) -> set[Arrival]:
        """Return the outputs of a box or a filter. Open outputs may have any labels."""
        surplus = inherited(labels, frozenset(inputs))
        made = (frozenset[Label](),) if outputs is None else outputs
        return {((out | surplus) & self._taken, True) for out in made}

    def _looped(self, typed: Typed, arrivals: set[Arrival]) -> set[Arrival]:
        net, body = typed.net, typed.children[0]
        assert isinstance(net, (Star, Feedback))
        patterns = net.exits if isinstance(net, Star) else net.backs
        found: set[Arrival] = set()
        seen: set[Arrival] = set()
        waiting = [*arrivals]
        while waiting:
            labels, made = arrival = waiting.pop()
            if arrival in seen:
                continue
            seen.add(arrival)
            if any(variant <= labels for variant in unguarded(patterns)):
                matching, others = {arrival}, set[Arrival]()
            else:  # it may have more labels, and guards may be true
                matching = {(labels | pattern.variant, made) for pattern in patterns}
                others = {arrival}
            leaving, entering = (matching, others) if isinstance(net, Star) else (others, matching)
            found |= leaving
            waiting += self._through(body, entering)
        return found


def _labels_taken(part: Typed) -> Variant:
    """Return the labels that a part itself looks for in records."""
    match part.net:
        case Star(exits=patterns) | Feedback(backs=patterns) | Sync(patterns):
            return frozenset[Label]().union(*variants_of(patterns))
        case Split(tag=tag):
            return frozenset((tag,))
    return frozenset[Label]().union(*part.inputs)


def _best_for(labels: Variant, branches: list[Typed], branch: Typed) -> tuple[Typed, bool]:
    """Return the first branch that these labels match best, and whether `branch` is as good."""

    def size(each: Typed) -> int:
        return max((len(variant) for variant in each.inputs if variant <= labels), default=-1)

    winner = max(branches, key=size)  # the first of several
    return winner, size(branch) == size(winner) and not _are_twins(branch, winner)


def _are_twins(branch: Typed, winner: Typed) -> bool:
    """Tell whether two branches do the same by a field and by a tag, as in a join."""
    one, other = branch.net, winner.net
    return isinstance(one, Split) and isinstance(other, Split) and one.body is other.body
