"""Conditions on a part of a net by itself, whatever flows into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from callboard.nets.terms.expressions import tags_of
from callboard.nets.terms.labels import Label, is_tag, text_of
from callboard.nets.terms.network import Box, Choice, Feedback, Net, RecordFilter, Star, Sync
from callboard.nets.terms.patterns import Item


def fault_of(net: Net) -> str | None:
    """Say what is wrong with a part of a net, or return None."""
    match net:
        case Box(signature=signature):
            listed = [signature.inputs or (), *(signature.outputs or ())]
            return next((twice for labels in listed if (twice := _repeated(labels))), None)
        case RecordFilter():
            return next(_faults_of_filter(net), None)
        case Sync(patterns) if len(patterns) < 2:
            return f"a synchrocell has at least two patterns, not {len(patterns)}"
        case Choice(branches) if len(branches) < 2:
            return f"a choice has at least two branches, not {len(branches)}"
        case Star(exits=()):
            return "a star has at least one exit"
        case Feedback(backs=()):
            return "a feedback has at least one pattern of what goes back"
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
            return f"{label} stands twice in {text_of(listed)}"
    return None
