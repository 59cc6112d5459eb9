"""Graphs in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.units import Unit


def describe(
    operators: Sequence[Operator], names: Mapping[Operator, str], units: Mapping[Operator, Unit]
) -> str:
    """Write a line for each operator: its name, its kind, its inputs, and its workers."""
    lines = []
    for operator in operators:
        inputs = ", ".join(_source(each, names) for each in operator.inputs)
        source = f"of {inputs}" if inputs else ""
        sharing = sharing_of(operator, units.get(operator))
        parts = [operator.kind, operator.detail, source, sharing]
        lines.append((names[operator], ", ".join(filter(None, parts))))
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines)


def sharing_of(operator: Operator, unit: Unit | None) -> str:
    """Say how workers share an operator, or which one has it alone. An entry has none."""
    if unit is not None and unit.where:
        return unit.where
    some = "" if operator.partitions is None else f"{operator.partitions} "
    shared = {
        "stateless": "any number of workers",
        "partitioned": f"{some}partitions of keys, in each one worker at a time",
        "stateful": "one worker at a time",
        "end": "",
    }[operator.work]
    if operator.ahead:
        shared = "in each lane one worker at a time"
    if operator.max_workers is None or not shared:
        return shared
    workers = "one worker" if operator.max_workers == 1 else f"{operator.max_workers} workers"
    return f"{shared}, {workers} at most"


def _source(outlet: Outlet, names: Mapping[Operator, str]) -> str:
    return names[outlet.operator] + (f" ({outlet.label})" if outlet.label else "")
