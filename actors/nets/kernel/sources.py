"""Functions that are made for filters, guards and exits, for the records of one shape.

Such a function takes the values of a record in the order of its shape. It uses Python's own
arithmetic: a filter is one call, without a look-up by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from callboard.core.text import safe_repr
from callboard.nets.errors import RecordError
from callboard.nets.language.compiling import GLOBALS, compiled, condition_of, source_of
from callboard.nets.terms.expressions import Expression, tags_of
from callboard.nets.terms.labels import Label, is_binding, is_tag, text_of
from callboard.nets.terms.patterns import Item, Rule


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
    """Return a filter's function, whether it returns the one output alone, and the outputs' labels.

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
    error = RecordError(f"{place}: no rule of the filter has a true guard")
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
                f"{place}: the expression <{expression}> reads {label}, and a record came "
                f"without it: {text_of(labels)}"
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
