"""Inference: the input type of each part of a net, and the flows through it.

A leaf takes its variants. Behind it, a record has the labels that the leaf produces, and those that
it did not take. If the next net needs more, the record must bring it, unless the leaf takes it
away. So inference sends each variant of the first net through the others, by its labels alone, and
adds what is missing until it gets through. Flows are kept by the labels that a net mentions, since
others pass by.

Where there is too much to look at, a net counts as one with open outputs: what comes behind it is
not checked, and it takes what its first net takes. The limits are MOST_OUTPUTS sets of labels at
one place, and MOST_TRIALS choices of what to add to a variant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from callboard.nets.errors import NetTypeError
from callboard.nets.terms.expressions import tags_of
from callboard.nets.terms.labels import (
    Label,
    Variant,
    is_binding,
    is_tag,
    matches,
    text_of,
    text_of_type,
)
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
from callboard.nets.terms.patterns import Item, Mapping, Signature
from callboard.nets.types.flows import (
    Facts,
    Group,
    LabelFlow,
    Route,
    Stuck,
    box_outputs,
    filter_outputs,
    inherited,
    labels_mentioned,
    leaf_flow,
    leaf_variants,
    looped,
    smallest,
    stuck_at,
    stuck_between,
    total,
    unguarded,
    variants_of,
)
from callboard.nets.types.messages import Messages

MOST_OUTPUTS = 200
MOST_TRIALS = 100

OPEN = LabelFlow(open=True)
NOTHING = LabelFlow()


class Inference:
    """Facts about terms, by their identity: a term that occurs twice is examined once."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._facts: dict[int, Facts] = {}
        self._binding: frozenset[Label] = frozenset()  # those known so far

    def facts(self, net: Net, parts: tuple[Facts, ...]) -> Facts:
        """Return the facts about a net, given those about its parts."""
        known = self._facts.get(id(net))
        if known is None:
            known = self._facts[id(net)] = self._inferred(net, parts)
        return known

    def record_flow(self, facts: Facts, labels: Variant) -> LabelFlow | Stuck:
        """Return the flow of a record with any labels through a net."""
        self._binding |= frozenset(filter(is_binding, labels))
        return self.flow(facts, labels)

    def flow(self, facts: Facts, labels: Variant) -> LabelFlow | Stuck:
        """Return the flow of a record through a net, with labels that some net mentions."""
        known = labels & facts.mentioned
        if self._binding:  # these may keep a record out anywhere
            known |= labels & self._binding
        flow = facts.flows.get(known)
        if flow is None:
            flow = self._new_flow(facts, known)
            if isinstance(flow, Stuck):
                flow = OPEN if facts.unchecked else flow
            elif flow.size > MOST_OUTPUTS:
                flow = OPEN
            facts.flows[known] = flow
        return flow if len(known) == len(labels) else flow.plus(labels - known)

    def _inferred(self, net: Net, parts: tuple[Facts, ...]) -> Facts:
        fault = fault_of(net)
        if fault is not None:
            raise NetTypeError(self._messages.fault(net, fault))
        mentioned = labels_mentioned(net).union(*(part.mentioned for part in parts))
        self._binding |= frozenset(filter(is_binding, labels_mentioned(net)))
        facts = Facts(net, parts, mentioned)
        facts.made = _made(net, parts)
        facts.at_start = self._at_start(facts)
        facts.groups = self._groups(facts)
        if isinstance(net, Star):
            self._refuse_endless(facts, net)
        elif isinstance(net, NamedNet) and net.signature is not None:
            self._check_signature(facts, net.signature)
        return facts

    # The input type.

    def _groups(self, facts: Facts) -> tuple[Group, ...]:
        parts = facts.parts
        match facts.net:
            case Choice():
                return tuple(group for part in parts for group in part.groups)
            case Star(exits=exits):
                leaving = tuple((variant,) for variant in unguarded(exits))
                return leaving + self._grown(facts, parts[0].groups)
            case Split(tag=tag):
                tagged = (tuple(v | {tag} for v in group) for group in parts[0].groups)
                return self._grown(facts, tuple(tagged))
            case NamedNet(signature=signature) if signature is not None:
                return tuple((variant,) for variant in signature.inputs)
            case net if parts:
                return self._grown(facts, parts[0].groups)
            case net:
                return tuple((variant,) for variant in leaf_variants(net))

    def _grown(self, facts: Facts, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """Add to each variant what the rest of the net needs. One of a group must get through."""
        chain = facts.parts if len(facts.parts) > 1 else (facts,)
        first: dict[Label, int] = {}  # the first link of the chain that mentions a label
        for index, link in enumerate(chain):
            for label in link.mentioned:
                first.setdefault(label, index)
        found = []
        for group in groups:
            variants: dict[Variant, None] = {}
            blamed: tuple[Variant, Stuck] | None = None
            for start in group:
                enough = self._enough(start, chain, first)
                if isinstance(enough, Stuck):
                    blamed = blamed or (start, enough)
                elif enough:
                    variants |= dict.fromkeys(enough)
                else:
                    facts.unchecked = True
                    variants[start] = None
            if blamed is not None and not variants:
                raise NetTypeError(self._messages.misfit(*blamed))
            found.append(tuple(variants))
        return tuple(found)

    def _enough(
        self, start: Variant, chain: tuple[Facts, ...], first: dict[Label, int]
    ) -> tuple[Variant, ...] | Stuck:
        """Return the smallest variants from `start` on that get through, or how none does.

        None at all stands for too many to try. A label that no link so far mentions would have come
        along to where it is missed, so the trial goes on from there.
        """
        found: list[Variant] = []
        hopeless: Stuck | None = None
        blamed: Stuck | None = None
        seen = {start}
        choices = 0
        trials = deque([(start, 0, LabelFlow({start: None}))])
        while trials:
            variant, index, flow = trials.popleft()
            if any(enough <= variant for enough in found):
                continue
            index, flow, stuck = self._through(chain, index, flow)
            if stuck is None:
                found.append(variant)
                continue
            feasible = [more for more in stuck.missing if not more & variant]
            if not feasible:
                hopeless = hopeless or stuck
            blamed = blamed or stuck
            choices += max(0, len(feasible) - 1)
            for more in feasible:
                if variant | more in seen:
                    continue
                seen.add(variant | more)
                if all(first[label] >= index and not is_binding(label) for label in more):
                    trials.append((variant | more, index, flow.plus(more)))
                else:
                    choices += 1
                    trials.append((variant | more, 0, LabelFlow({variant | more: None})))
            if choices > MOST_TRIALS:
                return ()
        return smallest(tuple(found)) if found else hopeless or blamed or ()

    # The flows.

    def _new_flow(self, facts: Facts, labels: Variant) -> LabelFlow | Stuck:
        match facts.net:
            case Box() | RecordFilter() | Sync() as leaf:
                return leaf_flow(leaf, labels)
            case Choice() as choice:
                return self._in_choice(choice, facts.parts, labels)
            case Star() | Feedback():
                return self._looped(facts, LabelFlow({labels: None}))
            case Split(tag=tag) if tag not in labels:
                bindings = filter(is_binding, labels)  # the body may take them
                return stuck_at(facts.net, labels, (frozenset((tag, *bindings)),))
            case NamedNet(signature=signature) if signature is not None:
                return self._in_signed(facts, signature, labels)
            case _:
                _, flow, stuck = self._through(facts.parts, 0, LabelFlow({labels: None}))
                return stuck or flow

    def _looped(self, facts: Facts, arriving: LabelFlow) -> LabelFlow | Stuck:
        body = facts.parts[0]
        return looped(facts, lambda labels: self.flow(body, labels), arriving, MOST_OUTPUTS)

    def _through(
        self, chain: tuple[Facts, ...], index: int, flow: LabelFlow
    ) -> tuple[int, LabelFlow, Stuck | None]:
        """Send a flow through a chain from `index` on. Return the index and flow at its end."""
        while index < len(chain):
            result = self._into(chain[index], flow)
            if isinstance(result, Stuck):
                return index, flow, result
            flow = result
            index += 1
        return index, flow, None

    def _into(self, facts: Facts, arriving: LabelFlow) -> LabelFlow | Stuck:
        """Send all outputs of a flow through one more net."""
        flows: list[tuple[LabelFlow, Route, bool]] = [(LabelFlow(open=arriving.open), None, False)]
        for labels, route in arriving.outputs.items():
            flow = self.flow(facts, labels)
            if isinstance(flow, Stuck):
                return flow.after(route)
            flows.append((flow, route, False))
        for labels, route in arriving.partial.items():
            flow = self.flow(facts, labels)
            if isinstance(flow, LabelFlow):
                flows.append((flow, route, True))
        result = total(flows)
        return result if result.size <= MOST_OUTPUTS else OPEN

    def _in_choice(
        self, net: Choice, parts: tuple[Facts, ...], labels: Variant
    ) -> LabelFlow | Stuck:
        branches = [part for part in parts if part.groups]
        if len(branches) == 1:  # beside initialisers, which take no records
            return self.flow(branches[0], labels)
        ranked = [(_best(part.inputs, labels), part) for part in branches]
        best = max((size for size, _ in ranked), default=-1)
        if best < 0:
            every = dict.fromkeys(v for part in branches for v in part.inputs)
            return stuck_between(net, labels, tuple(every))
        chosen = [part for size, part in ranked if size == best]
        flows = []
        for part in chosen if net.ties == "fair" else chosen[:1]:
            flow = self.flow(part, labels)
            if isinstance(flow, Stuck):
                return flow
            flows.append((flow, None, False))
        return total(flows)

    def _in_signed(self, facts: Facts, signature: Signature, labels: Variant) -> LabelFlow | Stuck:
        best: tuple[Variant, tuple[Variant, ...] | None] | None = None
        for mapping in signature.mappings:
            for variant in mapping.inputs:
                if variant <= labels and (best is None or len(variant) > len(best[0])):
                    best = variant, mapping.outputs
        if best is None:
            return stuck_at(facts.net, labels, signature.inputs)
        flow = self.flow(facts.parts[0], labels)
        if isinstance(flow, Stuck):
            return flow
        variant, outputs = best
        if outputs is None:
            return OPEN
        if flow.open:
            surplus = inherited(labels, variant)
            return LabelFlow({out | surplus: None for out in outputs})
        return _declared(flow, outputs)

    # Initialisers.

    def _at_start(self, facts: Facts) -> LabelFlow:
        """Return the outputs of a net's initialisers, without any record."""
        parts = facts.parts
        match facts.net:
            case Box(signature=signature) as box if signature.inputs is None:
                outputs = box_outputs(box)
                return OPEN if outputs is None else LabelFlow(dict.fromkeys(outputs))
            case Choice():
                return total([(part.at_start, None, False) for part in parts])
            case Star() | Feedback():
                flow = self._looped(facts, parts[0].at_start)
            case _:
                flow = NOTHING
                for part in parts:
                    result = self._into(part, flow)
                    if isinstance(result, Stuck):
                        flow = result
                        break
                    flow = total([(result, None, False), (part.at_start, None, False)])
        if isinstance(flow, Stuck):
            raise NetTypeError(self._messages.misfit(None, flow))
        return flow

    # Further checks.

    def _refuse_endless(self, facts: Facts, net: Star) -> None:
        """Refuse a star that records cannot leave, whatever other labels they have.

        That is certain if no exit has a label that the body produces: a record that matches an exit
        behind the body has matched it in front of it.
        """
        body = facts.parts[0]
        exits = frozenset[Label]().union(
            *(pattern.variant | tags_of(pattern.guard) for pattern in net.exits)
        )
        if body.made is None or body.made & exits or any(map(is_binding, facts.mentioned)):
            return
        for variant in body.inputs:
            flow = self.flow(facts, variant)
            again = self.flow(body, variant)
            if (
                isinstance(flow, LabelFlow)
                and isinstance(again, LabelFlow)
                and again.size > flow.size == 0
            ):
                text = text_of_type(variants_of(net.exits))
                raise NetTypeError(self._messages.endless(net, body.made, text))

    def _check_signature(self, facts: Facts, signature: Signature) -> None:
        """Check a declared type: each input gets through, and some output for it is declared.

        Outputs that it does not have are taken not to occur. A cell lets any record pass, for
        instance, and only the author knows that it gets one for each pattern.
        """
        for mapping in signature.mappings:
            for variant in mapping.inputs:
                flow = self.flow(facts.parts[0], variant)
                if isinstance(flow, Stuck):
                    raise NetTypeError(self._messages.misfit(variant, flow))
                self._check_outputs(facts, variant, flow, (mapping,))
        self._check_outputs(facts, None, facts.at_start, signature.mappings)

    def _check_outputs(
        self, facts: Facts, start: Variant | None, flow: LabelFlow, mappings: tuple[Mapping, ...]
    ) -> None:
        declared: list[Variant] = []
        for mapping in mappings:
            if mapping.outputs is None:
                return
            declared += mapping.outputs
        if flow.open or not flow.outputs or not declared:
            return
        flow = LabelFlow(flow.outputs | flow.partial)
        if not _declared(flow, tuple(declared)).outputs:
            given, route = next(iter(flow.outputs.items()))
            text = text_of_type(declared)
            raise NetTypeError(self._messages.undeclared(facts.net, start, given, route, text))


def _best(variants: tuple[Variant, ...], labels: Variant) -> int:
    """Return the number of labels of the largest variant that a record matches, or -1."""
    return max((len(v) for v in variants if matches(v, labels)), default=-1)


def _declared(flow: LabelFlow, variants: tuple[Variant, ...]) -> LabelFlow:
    """Return the part of a flow that a signature has."""

    def is_declared(labels: Variant) -> bool:
        return any(variant <= labels for variant in variants)

    return LabelFlow(
        {labels: route for labels, route in flow.outputs.items() if is_declared(labels)},
        {labels: route for labels, route in flow.partial.items() if is_declared(labels)},
    )


def _made(net: Net, parts: tuple[Facts, ...]) -> Variant | None:
    """Return the labels that any part of a net may emit, or None if that is not known."""
    made: set[Label] = set()
    match net:
        case Box():
            outputs = box_outputs(net)
            if outputs is None:
                return None
            made.update(*outputs)
        case RecordFilter():
            made.update(*filter_outputs(net))
        case Sync(patterns):
            made.update(*variants_of(patterns))
    for part in parts:
        if part.made is None:
            return None
        made |= part.made
    return frozenset(made)


def fault_of(net: Net) -> str | None:
    """Describe the error in a part of a net, or return None."""
    match net:
        case Box(signature=signature):
            listed = [signature.inputs or (), *(signature.outputs or ())]
            return next((twice for labels in listed if (twice := _repeated(labels))), None)
        case RecordFilter():
            return next(_faults_of_filter(net), None)
        case Sync(patterns) if len(patterns) < 2:
            return f"a synchrocell expects at least two patterns, got {len(patterns)}"
        case Choice(branches) if len(branches) < 2:
            return f"a choice expects at least two branches, got {len(branches)}"
        case Star(exits=()):
            return "a star expects at least one exit"
        case Feedback(backs=()):
            return "a feedback expects at least one pattern"
    return None


def _faults_of_filter(net: RecordFilter) -> Iterator[str]:
    for rule in net.rules:
        yield from _unread(net, "its guard", tags_of(rule.guard))
        for items in rule.outputs:
            twice = _repeated([item.label for item in items])
            if twice:
                yield twice
            for item in items:
                yield from _faults_of_item(net, item)


def _faults_of_item(net: RecordFilter, item: Item) -> Iterator[str]:
    if is_tag(item.label):
        yield from _unread(net, item.label, tags_of(item.value))
        return
    source = item.source or item.label
    if item.value is not None or is_tag(source):
        yield f"the field {item.label} gets the value of a field, not of tags"
    elif source not in net.variant:
        yield (
            f"the field {item.label} comes from {source}, which the filter's pattern "
            f"{text_of(net.variant)} lacks"
        )


def _unread(net: RecordFilter, reader: str, tags: Iterable[Label]) -> Iterator[str]:
    for label in sorted(tags):
        if label not in net.variant:
            yield f"{reader} reads {label}, which the filter's pattern {text_of(net.variant)} lacks"


def _repeated(labels: Iterable[Label]) -> str | None:
    listed = list(labels)
    for label in listed:
        if listed.count(label) > 1:
            return f"{label} occurs twice in {text_of(listed)}"
    return None
