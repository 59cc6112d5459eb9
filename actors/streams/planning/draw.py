"""Graphs in words, and as Mermaid diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callboard.streams.planning.operator import Operator

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream


# What stands for itself in no Mermaid label.
_ENTITIES = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;", "\n": " "}
)


def describe(operators: Sequence[Operator], names: Mapping[Operator, str]) -> str:
    """Write a line for each operator: its name, what it is, its inputs, how it can be shared."""
    lines = []
    for operator in operators:
        inputs = ", ".join(names[each._operator] + _in_brackets(each) for each in operator.inputs)
        source = f"of {inputs}" if inputs else ""
        parts = [operator.kind, operator.detail, source, sharing_of(operator)]
        lines.append((names[operator], ", ".join(filter(None, parts))))
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines)


def mermaid(operators: Sequence[Operator], names: Mapping[Operator, str]) -> str:
    """Write a Mermaid flowchart."""
    lines = ["flowchart LR"]
    number = {operator: f"o{index}" for index, operator in enumerate(operators)}
    for operator in operators:
        name = names[operator].translate(_ENTITIES)
        lines.append(f'    {number[operator]}["{name}<br/>{operator.kind}"]')
    for operator in operators:
        for each in operator.inputs:
            label = port_of(each)
            arrow = f"-- {label} -->" if label else "-->"
            lines.append(f"    {number[each._operator]} {arrow} {number[operator]}")
    return "\n".join(lines) + "\n"


def work_of(operator: Operator) -> str:
    """Say what kind of work an operator is: what its colour and its description depend on."""
    if operator.program is None or not operator.ports:
        return "end"
    if operator.partitions > 1:
        return "partitioned"
    return "stateful" if operator.stateful or operator.joins else "stateless"


def sharing_of(operator: Operator) -> str:
    """Say how an operator can be shared among workers."""
    return {
        "stateless": "any number of workers",
        "partitioned": f"{operator.partitions} partitions of keys, in each one worker at a time",
        "stateful": "one worker at a time",
        "end": "",
    }[work_of(operator)]


def port_of(stream: Stream[Any]) -> str:
    """Name the output that a stream is of, where that is not an operator's main one."""
    operator, port = stream._operator, stream._port
    return operator.ports[port] if port or operator.kind == "branch" else ""


def _in_brackets(stream: Stream[Any]) -> str:
    port = port_of(stream)
    return f" ({port})" if port else ""
