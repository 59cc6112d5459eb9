"""Pictures and descriptions of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from callboard.streams.operator import Operator

Names = Mapping[Operator, str]

# Measures of an SVG picture, in pixels.
_WIDTH, _HEIGHT = 150, 44
_ACROSS, _DOWN = 60, 24
_MARGIN = 12
_LETTERS = 20  # of a name that fit into a box

_COLOURS = {
    "stateless": "#e3f0fb",
    "partitioned": "#e5f5e0",
    "stateful": "#fdf0d5",
    "end": "#eeeeee",
}


def work_of(operator: Operator) -> str:
    """Say how an operator can be shared among workers."""
    if operator.program is None or not operator.ports:
        return "end"
    if operator.partitions > 1:
        return "partitioned"
    return "stateful" if operator.stateful or operator.joins else "stateless"


def describe(operators: Sequence[Operator], names: Names) -> str:
    """Write a line for each operator: its name, what it is, its inputs, how it can be shared."""
    lines = []
    for operator in operators:
        inputs = ", ".join(f"{names[each._operator]}{_port(each)}" for each in operator.inputs)
        source = f"of {inputs}" if inputs else ""
        parts = [operator.kind, operator.detail, source, _sharing(operator)]
        lines.append((names[operator], ", ".join(filter(None, parts))))
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines)


def _sharing(operator: Operator) -> str:
    partitions = f"{operator.partitions} partitions of keys, in each one worker at a time"
    return {
        "stateless": "any number of workers",
        "partitioned": partitions,
        "stateful": "one worker at a time",
        "end": "",
    }[work_of(operator)]


def _port(stream: object) -> str:
    operator, port = stream._operator, stream._port  # type: ignore[attr-defined]
    return f" ({operator.ports[port]})" if port or operator.kind == "branch" else ""


def mermaid(operators: Sequence[Operator], names: Names) -> str:
    """Write a Mermaid flowchart."""
    lines = ["flowchart LR"]
    number = {operator: f"o{index}" for index, operator in enumerate(operators)}
    for operator in operators:
        name = names[operator].replace('"', "#quot;")
        lines.append(f'    {number[operator]}["{name}<br/>{operator.kind}"]')
    for operator in operators:
        for each in operator.inputs:
            label = _port(each).strip(" ()")
            arrow = f"-- {label} -->" if label else "-->"
            lines.append(f"    {number[each._operator]} {arrow} {number[operator]}")
    return "\n".join(lines) + "\n"


def svg(operators: Sequence[Operator], names: Names) -> str:
    """Write an SVG picture, with a column for each distance from the entries."""
    columns: dict[Operator, int] = {}
    for operator in operators:
        before = [columns[each._operator] for each in operator.inputs]
        columns[operator] = 1 + max(before, default=-1)
    rows: dict[int, int] = {}
    places: dict[Operator, tuple[int, int]] = {}
    for operator in operators:
        column = columns[operator]
        row = rows.get(column, 0)
        rows[column] = row + 1
        x = _MARGIN + column * (_WIDTH + _ACROSS)
        places[operator] = x, _MARGIN + row * (_HEIGHT + _DOWN)
    width = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in places.values()) + _HEIGHT + _MARGIN
    shapes = [_edge(places, each, operator) for operator in operators for each in operator.inputs]
    shapes += [_box(operator, names[operator], *places[operator]) for operator in operators]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _box(operator: Operator, name: str, x: int, y: int) -> str:
    short = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
    middle = x + _WIDTH // 2
    return (
        f"<g><title>{escape(name)}: {escape(_sharing(operator) or operator.kind)}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" stroke="#555" '
        f'fill="{_COLOURS[work_of(operator)]}"/>'
        f'<text x="{middle}" y="{y + 19}" text-anchor="middle">{escape(short)}</text>'
        f'<text x="{middle}" y="{y + 35}" text-anchor="middle" fill="#666" font-size="10">'
        f"{escape(operator.kind)}</text></g>"
    )


def _edge(places: Mapping[Operator, tuple[int, int]], stream: object, reader: Operator) -> str:
    x1, y1 = places[stream._operator]  # type: ignore[attr-defined]
    x2, y2 = places[reader]
    x1, y1, y2 = x1 + _WIDTH, y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
    bend = (x2 - x1) // 2
    path = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    line = f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#tip)"/>'
    label = escape(_port(stream).strip(" ()"))
    if label:
        line += f'<text x="{x1 + 6}" y="{y1 - 5}" font-size="10" fill="#666">{label}</text>'
    return line


FORMATS: dict[str, Callable[[Sequence[Operator], Names], str]] = {"svg": svg, "mermaid": mermaid}
