"""Print the tables of docs/compared.md from a kept run.

    python tests/bench --only compared --json compared.json
    python tests/bench/compared_tables.py compared.json

A benchmark that the run leaves out has empty cells.
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from report import table

QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8")
BATCHES = "callboard, Arrow batches"
NEXMARK = {  # what a row is called, and the suite's name
    "**callboard**, Arrow batches": BATCHES,
    "**callboard**, rows": "callboard",
    "Bytewax, rows": "Bytewax",
    "Bytewax, Arrow batches": "Bytewax, Arrow batches",
    "DuckDB, all rows at once": "DuckDB, all rows at once",
}
LOADER = {
    "**callboard**, `batch_size=1`": "callboard, a row a round",
    "**callboard**, defaults": "callboard",
    "SPDL": "SPDL",
    "ThreadPoolExecutor": "ThreadPoolExecutor",
    "multiprocessing": "multiprocessing",
    "Ray actors": "Ray actors",
    "Ray Data": "Ray Data",
    "a loop": "a loop",
}
CALLS = {
    "**callboard**, an actor": "callboard",
    "**callboard**, an actor in a process": "callboard, an actor in a process",
    "Ray, an actor in a process": "Ray",
    "a process and a pipe": "a process and a pipe",
}


def figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def ratio(ours: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Return the median of the rounds' ratios."""
    pairs = zip(ours.get("values", ()), other.get("values", ()), strict=False)
    return statistics.median(ratios) if (ratios := [a / b for a, b in pairs]) else None


def nexmark(benchmarks: dict[str, Any]) -> str:
    """Write thousand rows a second for a core, and how many times Bytewax's they are."""
    found = [benchmarks.get(f"nexmark_{query}", {}).get("competitors", {}) for query in QUERIES]
    rows = []
    for title, name in NEXMARK.items():
        medians = [each.get(name, {}).get("median") for each in found]
        rows.append([title, *(figure(m and m / 1e3) for m in medians)])
    for title, name in (("Arrow batches", BATCHES), ("rows", "callboard")):
        ratios = [ratio(each.get(name, {}), each.get("Bytewax", {})) for each in found]
        rows.append([f"{title} against Bytewax's rows, times", *map(figure, ratios)])
    return table(["", *QUERIES], rows)


def loader(benchmarks: dict[str, Any]) -> str:
    """Write pictures a second, and milliseconds of processor time for one."""
    found = benchmarks.get("loader", {}).get("competitors", {})
    rows = []
    for title, name in LOADER.items():
        ways = [found.get(each, {}) for each in (name, f"{name}, 2 workers")]
        costs = [way.get("cpu_us") for way in ways]
        rates = [figure(way.get("median")) for way in ways]
        rows.append([title, *rates, *(f"{cost / 1e3:.1f}" if cost else "" for cost in costs)])
    return table(["", "1 thread", "2 threads", "processor ms, 1", "2"], rows)


def calls(benchmarks: dict[str, Any]) -> str:
    """Write calls a second, and microseconds of processor time for one."""
    found = [
        benchmarks.get(each, {}).get("competitors", {}) for each in ("calls", "calls_in_batches")
    ]
    rows = []
    for title, name in CALLS.items():
        ways = [each.get(name, {}) for each in found]
        rates = [figure(way.get("median")) for way in ways]
        rows.append([title, *rates, *(figure(way.get("cpu_us")) for way in ways)])
    head = ["", "calls/s, in turn", "500 on their way", "processor µs, in turn", "on their way"]
    return table(head, rows)


def main(path: str) -> None:
    benchmarks = json.loads(Path(path).read_text())["benchmarks"]
    print(*(each(benchmarks) for each in (nexmark, loader, calls)), sep="\n\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
