"""Graphs as Mermaid diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callboard.streams.planning.operator import Operator
from callboard.streams.planning.units import Unit

# Characters that a Mermaid label must escape.
_ENTITIES = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;", "\n": " "}
)


def mermaid(
    operators: Sequence[Operator], names: Mapping[Operator, str], units: Mapping[Operator, Unit]
) -> str:
    """Write a Mermaid flowchart."""
    lines = ["flowchart LR"]
    number = {operator: f"o{index}" for index, operator in enumerate(operators)}
    for operator in operators:
        name = names[operator].translate(_ENTITIES)
        unit = units.get(operator)
        where = f"<br/>{unit.where}" if unit is not None and unit.where else ""
        lines.append(f'    {number[operator]}["{name}<br/>{operator.kind}{where}"]')
    for operator in operators:
        for each in operator.inputs:
            arrow = f"-- {each.label} -->" if each.label else "-->"
            lines.append(f"    {number[each.operator]} {arrow} {number[operator]}")
    return "\n".join(lines) + "\n"
