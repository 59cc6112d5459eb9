"""Drawings of graphs: in words, as Mermaid diagrams and as SVG pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from callboard.observing.layout import HEIGHT, WIDTH, Corner, lay_out, path_of
from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.pipelines import Pipeline


def describe(
    operators: Sequence[Operator],
    names: Mapping[Operator, str],
    pipelines: Mapping[Operator, Pipeline],
) -> str:
    """Write a line for each operator: its name, its kind, its inputs, and its workers."""
    lines = []
    for operator in operators:
        inputs = ", ".join(_source(each, names) for each in operator.inputs)
        source = f"of {inputs}" if inputs else ""
        sharing = sharing_of(operator, pipelines.get(operator))
        parts = [operator.kind, operator.detail, source, sharing]
        lines.append((names[operator], ", ".join(filter(None, parts))))
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines)


def sharing_of(operator: Operator, pipeline: Pipeline | None) -> str:
    """Describe how workers share an operator, or which one has it alone. An entry has none."""
    if pipeline is not None and pipeline.where:
        return pipeline.where
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


# Characters that a Mermaid label must escape.
_ENTITIES = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "#": "#35;", "\n": " "}
)


def mermaid(
    operators: Sequence[Operator],
    names: Mapping[Operator, str],
    pipelines: Mapping[Operator, Pipeline],
) -> str:
    """Write a Mermaid flowchart."""
    lines = ["flowchart LR"]
    number = {operator: f"o{index}" for index, operator in enumerate(operators)}
    for operator in operators:
        name = names[operator].translate(_ENTITIES)
        pipeline = pipelines.get(operator)
        where = f"<br/>{pipeline.where}" if pipeline is not None and pipeline.where else ""
        lines.append(f'    {number[operator]}["{name}<br/>{operator.kind}{where}"]')
    for operator in operators:
        for each in operator.inputs:
            arrow = f"-- {each.label} -->" if each.label else "-->"
            lines.append(f"    {number[each.operator]} {arrow} {number[operator]}")
    return "\n".join(lines) + "\n"


_LETTERS = 20  # of a name that fit into a box

_COLOURS = {
    "stateless": "#e3f0fb",
    "partitioned": "#e5f5e0",
    "stateful": "#fdf0d5",
    "end": "#eeeeee",
}


def svg(
    operators: Sequence[Operator],
    names: Mapping[Operator, str],
    pipelines: Mapping[Operator, Pipeline],
) -> str:
    """Write the picture."""
    number = {operator: i for i, operator in enumerate(operators)}
    inputs = [[number[each.operator] for each in operator.inputs] for operator in operators]
    entries = {number[operator] for operator in operators if operator.kind == "entry"}
    layout = lay_out(inputs, entries)
    outlets = [each for operator in operators for each in operator.inputs]
    shapes = [_line(outlet, way) for outlet, way in zip(outlets, layout.ways, strict=True)]
    shapes += [
        _box(operator, names[operator], pipelines.get(operator), *corner)
        for operator, corner in zip(operators, layout.corners, strict=True)
    ]
    width, height = layout.width, layout.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _box(operator: Operator, name: str, pipeline: Pipeline | None, x: int, y: int) -> str:
    short = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
    middle = x + WIDTH // 2
    where = f" · {pipeline.where}" if pipeline is not None and pipeline.where else ""
    sharing = sharing_of(operator, pipeline) or operator.kind
    return (
        f"<g><title>{escape(name)}: {escape(sharing)}</title>"
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" stroke="#555" '
        f'fill="{_COLOURS[operator.work]}"/>'
        f'<text x="{middle}" y="{y + 19}" text-anchor="middle">{escape(short)}</text>'
        f'<text x="{middle}" y="{y + 35}" text-anchor="middle" fill="#666" font-size="10">'
        f"{escape(operator.kind + where)}</text></g>"
    )


def _line(outlet: Outlet, way: Sequence[Corner]) -> str:
    shape = f'<path d="{path_of(way)}" fill="none" stroke="#555" marker-end="url(#tip)"/>'
    if label := escape(outlet.label):
        x, y = way[1]
        at = f'x="{x - 10}" y="{y + HEIGHT // 2 - 5}" text-anchor="end"'
        shape += f'<text {at} font-size="10" fill="#666">{label}</text>'
    return shape
