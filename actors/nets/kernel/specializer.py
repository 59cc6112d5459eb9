"""Specializes nodes to the shape of a record, when the first record of that shape arrives.

Filters, guards and exits become functions of the values of a record, in the order of the shape.
They use Python's own arithmetic: a filter is one call, without a look-up by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from callboard.core.text import safe_repr
from callboard.nets.errors import RecordError
from callboard.nets.kernel.leaves import SpecializedBox, SpecializedFilter, SpecializedSync
from callboard.nets.kernel.record import Assembler, Shape, Shapes
from callboard.nets.language.compiling import GLOBALS, compiled, condition_of, source_of
from callboard.nets.terms.expressions import Expression, tags_of
from callboard.nets.terms.labels import (
    Label,
    Variant,
    is_binding,
    is_tag,
    matches,
    name_of,
    text_of,
    text_of_type,
)
from callboard.nets.terms.network import Box, RecordFilter, Split, Sync
from callboard.nets.terms.patterns import Item, Pattern, Rule
from callboard.nets.types.hints import note_on_hints


class Specializer:
    """Makes the functions that specialize the nodes of a run to shapes."""

    def __init__(self, shapes: Shapes, names: dict[str, Label]) -> None:
        self.shapes = shapes
        self.names = names

    def filter(self, path: str, term: RecordFilter) -> Callable[[Shape], SpecializedFilter]:
        """Specialize a filter."""

        def specialize(shape: Shape) -> SpecializedFilter:
            _refuse_mismatch(path, shape, term.variant)
            function, single, outputs = filter_function(
                path, shape.labels, term.variant, term.rules
            )
            shapes = [tuple(map(self.shapes.of_labels, rule)) for rule in outputs]
            return SpecializedFilter(function, single, list(shapes[0]) if single else shapes)

        return specialize

    def box(self, path: str, term: Box) -> Callable[[Shape], SpecializedBox]:
        """Specialize a box."""
        inputs, outputs = term.signature.inputs or (), term.signature.outputs
        names = self.names if outputs is None else names_of(outputs)
        variants = None if outputs is None else frozenset(map(frozenset, outputs))
        keys = outputs[0] if outputs is not None and len(outputs) == 1 else None

        def specialize(shape: Shape) -> SpecializedBox:
            _refuse_mismatch(path, shape, frozenset(inputs), term)
            consumed = frozenset(inputs)
            assembler = Assembler(self.shapes, names, variants, consumed, shape, path)
            return SpecializedBox([shape.slots[label] for label in inputs], assembler, keys)

        return specialize

    def sync(self, path: str, term: Sync) -> Callable[[Shape], SpecializedSync]:
        """Specialize a synchrocell."""

        def specialize(shape: Shape) -> SpecializedSync:
            matched, guards = [], []
            for number, pattern in enumerate(term.patterns):
                if matches(pattern.variant, shape.variant):
                    guard = pattern.guard
                    matched.append(number)
                    guards.append(guard and test_function(path, shape.labels, [guard]))
            return SpecializedSync(matched, guards)

        return specialize

    def merge(self, term: Sync) -> Callable[..., tuple[Shape, list[tuple[int, int]]]]:
        """Specialize the merge of the records that a synchrocell kept."""

        def specialize(
            shapes: tuple[Shape, ...], are_first: tuple[bool, ...]
        ) -> tuple[Shape, list[tuple[int, int]]]:
            places = {label: (0, slot) for label, slot in shapes[0].slots.items()}
            for number, pattern in enumerate(term.patterns):
                if not are_first[number]:
                    for label in pattern.variant:
                        places[label] = number, shapes[number].slots[label]
            shape = self.shapes.of_labels(frozenset(places))
            return shape, [places[label] for label in shape.labels]

        return specialize

    def choice(
        self, path: str, branches: Sequence[tuple[Variant, ...]], is_fair: bool
    ) -> Callable[[Shape], int | list[int]]:
        """Specialize a choice among branches with these inputs; an initialiser has none."""
        open_to_records = [number for number, inputs in enumerate(branches) if inputs]

        def specialize(shape: Shape) -> int | list[int]:
            if len(open_to_records) == 1 < len(branches):
                return open_to_records[0]
            best: list[int] = []
            most = -1
            for number in open_to_records:
                counts = [len(each) for each in branches[number] if matches(each, shape.variant)]
                count = max(counts, default=-1)
                if count > most:
                    best, most = [number], count
                elif count == most and count >= 0:
                    best.append(number)
            if not best:
                types = "; ".join(text_of_type(inputs) for inputs in branches if inputs)
                raise RecordError(
                    f"{path}: expected what a branch takes, which is {types}, "
                    f"got {text_of(shape.variant)}"
                )
            return best if is_fair and len(best) > 1 else best[0]

        return specialize

    def test(self, path: str, patterns: Sequence[Pattern]) -> Callable[[Shape], Any]:
        """Specialize the test whether a record matches one of the patterns."""

        def specialize(shape: Shape) -> Any:
            found = [each for each in patterns if matches(each.variant, shape.variant)]
            guards = [each.guard for each in found if each.guard is not None]
            if len(guards) < len(found):
                return True
            return test_function(path, shape.labels, guards) if guards else False

        return specialize

    def split(self, path: str, term: Split) -> Callable[[Shape], int]:
        """Specialize a parallel replication."""

        def specialize(shape: Shape) -> int:
            slot: int | None = shape.slots.get(term.tag)
            if slot is None:
                raise RecordError(
                    f"{path}: expected {term.tag}, which chooses the replica, "
                    f"got {text_of(shape.variant)}"
                )
            return slot

        return specialize


def names_of(variants: Sequence[Sequence[Label]]) -> dict[str, Label]:
    """Return the labels by those names that stand for one label in these variants."""
    labels = {label for variant in variants for label in variant}
    names: dict[str, Label] = {}
    for label in sorted(labels):
        if name_of(label) not in labels:
            names[name_of(label)] = label
    return names


def _refuse_mismatch(path: str, shape: Shape, variant: Variant, box: Box | None = None) -> None:
    if not matches(variant, shape.variant):
        note = "" if box is None else note_on_hints(box, variant - shape.variant)
        raise RecordError(
            f"{path}: expected {text_of(variant)}, got {text_of(shape.variant)}{note}"
        )


def test_function(place: str, labels: Sequence[Label], guards: Sequence[Expression]) -> Any:
    """Return a function of the values that tells whether one of the guards is true."""
    names = _names(labels)
    for guard in guards:
        _check_tags(place, guard, names, labels)
    condition = " or ".join(f"({condition_of(each, names)})" for each in guards)
    return _made(place, labels, f"return {condition}")


def filter_function(
    place: str, labels: Sequence[Label], variant: frozenset[Label], rules: Sequence[Rule]
) -> tuple[Callable[..., Any], bool, list[tuple[frozenset[Label], ...]]]:
    """Return a filter's function, whether it returns only the one output, and the outputs' labels.

    Otherwise the function returns the rule's number and then the values of each output. The values
    are in the order of the sorted labels.
    """
    names = _names(labels)
    inherited = {
        label: names[label] for label in labels if label not in variant and not is_binding(label)
    }
    single = len(rules) == 1 and rules[0].guard is None and len(rules[0].outputs) == 1
    lines, shapes = [], []
    for number, rule in enumerate(rules):
        outputs = [_values(place, items, variant, names, inherited) for items in rule.outputs]
        shapes.append(tuple(frozenset(values) for values in outputs))
        texts = [_tuple_of(values[label] for label in sorted(values)) for values in outputs]
        answer = texts[0] if single else _tuple_of([str(number), *texts])
        if rule.guard is None:
            lines.append(f"return {answer}")
            break
        _check_tags(place, rule.guard, names, labels)
        lines.append(f"if {condition_of(rule.guard, names)}: return {answer}")
    else:
        lines.append("raise no_rule")
    error = RecordError(f"{place}: expected a rule of the filter with a true guard, got none")
    return _made(place, labels, "\n        ".join(lines), no_rule=error), single, shapes


def _tuple_of(texts: Iterable[str]) -> str:
    return f"({''.join(f'{text}, ' for text in texts)})"


def _values(
    place: str,
    items: Sequence[Item],
    variant: frozenset[Label],
    names: dict[Label, str],
    inherited: dict[Label, str],
) -> dict[Label, str]:
    values = dict(inherited)
    for item in items:
        if item.value is not None:
            _check_tags(place, item.value, names, list(names))
            values[item.label] = source_of(item.value, names)
        elif item.source is not None:
            values[item.label] = names[item.source]
        else:
            values[item.label] = names[item.label] if item.label in variant else "0"
    return values


def _check_tags(
    place: str, expression: Expression, names: dict[Label, str], labels: Sequence[Label]
) -> None:
    for label in tags_of(expression):
        if label not in names:
            raise RecordError(
                f"{place}: expected {label}, which the expression <{expression}> reads, "
                f"got {text_of(labels)}"
            )


def _names(labels: Sequence[Label]) -> dict[Label, str]:
    return {label: f"v{number}" for number, label in enumerate(labels)}


def _made(place: str, labels: Sequence[Label], body: str, **names: Any) -> Callable[..., Any]:
    values = ", ".join(_names(labels).values())
    divided = f"    except ZeroDivisionError as zero:\n        raise by_zero({values}) from zero\n"
    text = f"def made({values}):\n    try:\n        {body}\n{divided}"

    def by_zero(*values: Any) -> RecordError:
        tags = {label: each for label, each in zip(labels, values, strict=True) if is_tag(label)}
        return RecordError(f"{place}: an expression divides by zero, with {safe_repr(tags)}")

    namespace: dict[str, Any] = {**GLOBALS, **names, "by_zero": by_zero}
    exec(compiled(text, f"<{place}>", "exec"), namespace)  # of numbers and our own names alone
    made: Callable[..., Any] = namespace["made"]
    return made
