"""Graphs in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callboard.streams.planning.operator import Operator, Place


def describe(operators: Sequence[Operator], names: Mapping[Operator, str]) -> str:
    """Write a line for each operator: its name, what it is, its inputs, how it can be shared."""
    lines = []
    for operator in operators:
        inputs = ", ".join(_source(each, names) for each in operator.inputs)
        source = f"of {inputs}" if inputs else ""
        parts = [operator.kind, operator.detail, source, sharing_of(operator)]
        lines.append((names[operator], ", ".join(filter(None, parts))))
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines)


def sharing_of(operator: Operator) -> str:
    """Say how an operator can be shared among workers."""
    return {
        "stateless": "any number of workers",
        "partitioned": f"{operator.partitions} partitions of keys, in each one worker at a time",
        "stateful": "one worker at a time",
        "end": "",
    }[operator.work]


def _source(place: Place, names: Mapping[Operator, str]) -> str:
    return names[place.operator] + (f" ({place.label})" if place.label else "")
