"""The report of a run: tables in Markdown, JSON, and the machine."""

import math
import os
import platform
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from competitor import Benchmark, Competitor, Cost, Score

Scores = dict[str, Score]  # of one benchmark, by the competitor's name
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def quantity(value: float) -> str:
    """Write a value with three digits and a prefix."""
    scale, prefix = next(((s, p) for s, p in PREFIXES if value >= s), (1.0, ""))
    scaled = value / scale
    digits = 0 if scaled >= 100 else 1 if scaled >= 10 else 2 if scaled >= 0.1 else 4
    return f"{scaled:.{digits}f}{prefix}"


def ratio(score: Score, other: Score | None) -> str:
    times = math.nan if other is None or score is other else score.over(other)
    return "" if math.isnan(times) else f"{times:.3g}"


def best(benchmark: Benchmark, scores: Scores, kind: str, role: str) -> Score | None:
    """Return the fastest of the `kind`'s peers, or floors."""
    rivals = [
        scores[each.name]
        for each in benchmark.competitors
        if (each.kind, each.role) == (kind, role) and scores[each.name].valid
    ]
    return max(rivals, key=lambda score: score.median, default=None)


def columns(benchmark: Benchmark) -> dict[Cost, str]:
    """Return what a benchmark's table shows beside the values, and how it is called."""
    costs: dict[Cost, str] = {"cpu": "CPU us", "switches": "switches a million"}
    levels: dict[Cost, str] = {"settled": "periods until settled", "changes": "changes after"}
    return (costs if benchmark.costs else {}) | (levels if benchmark.levels else {})


def row(benchmark: Benchmark, scores: Scores, competitor: Competitor) -> list[str]:
    score = scores[competitor.name]
    name = f"**{competitor.name}**" if competitor.role == "ours" else competitor.name
    if not score.valid:
        problem = f"ERROR: {score.error}" if score.error else f"absent: {score.absent}"
        return [name, competitor.kind, problem, *[""] * (3 + len(columns(benchmark)))]
    spread = f"{quantity(min(score.values))} to {quantity(max(score.values))}"
    peer = best(benchmark, scores, competitor.kind, "peer")
    floor = best(benchmark, scores, competitor.kind, "floor")
    over_peer = "" if competitor.role == "floor" else ratio(score, peer)
    costs = [score.cost(name) for name in columns(benchmark)]
    return [
        name, competitor.kind, quantity(score.median), spread, over_peer, ratio(score, floor),
        *("" if cost is None else quantity(cost) for cost in costs),
    ]  # fmt: skip


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """Lay out a Markdown table with aligned columns."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    cells = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    cells.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(cells)


def section(benchmark: Benchmark, scores: Scores) -> str:
    """Write one benchmark's table, fastest first."""
    header = [
        "", "kind", f"median, {benchmark.unit}", "spread", "x best peer", "x floor",
        *columns(benchmark).values(),
    ]  # fmt: skip

    def rank(competitor: Competitor) -> float:
        score = scores[competitor.name]
        return -score.median if score.valid else 0

    rows = (row(benchmark, scores, each) for each in sorted(benchmark.competitors, key=rank))
    return f"### {benchmark.title} (`{benchmark.name}`)\n\n{table(header, rows)}\n"


def machine() -> dict[str, Any]:
    """Describe where the run took place."""
    libraries = {}
    for name in (
        "callboard", "anyio", "culsans", "joblib", "langgraph", "mpire", "pykka", "thespian",
        "trio", "xoscar",
    ):  # fmt: skip
        try:
            libraries[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            libraries[name] = "not installed"
    return {
        "python": sys.version.split()[0],
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "libraries": libraries,
    }


def as_json(benchmark: Benchmark, scores: Scores) -> dict[str, Any]:
    def entry(competitor: Competitor) -> dict[str, Any]:
        score = scores[competitor.name]
        known = {"kind": competitor.kind, "role": competitor.role, "values": score.values}
        if score.error or score.absent:
            return known | {"error": score.error, "absent": score.absent}
        costs = {"cpu_us": score.cost("cpu"), "switches_a_million": score.cost("switches")}
        costs |= {name: score.cost(name) for name in ("settled", "changes")}
        return known | {"median": score.median, **costs}

    entries = {each.name: entry(each) for each in benchmark.competitors}
    return {"title": benchmark.title, "unit": benchmark.unit, "competitors": entries}
