"""The figures of Schneider and Wu (2017) on a machine of 184 cores, which is simulated."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from subprocess import TimeoutExpired
from typing import Any

from simulator.programs import Kept
from simulator.validation import FLOPS, SHAPES

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 184)
CORES = {"cores": 185, "of_socket": 47}  # four sockets; the sender has a core, too
SIZE = {"window": 256, "warm": 256, "rounds": 256}
ROWS = {"pipeline": 128, "wide": 1_000, "mixed": 160}


def kinds(shape: str) -> dict[str, dict[str, Any]]:
    """Return the ways in which the workers may run a shape."""
    if shape == "wide":
        return {"dynamic": {"stages": "shared"}}
    return {"dynamic": {"stages": "chained"}, "dynamic, one at a time": {"stages": "ordered"}}


def cases() -> Iterator[tuple[str, int, str, int, dict[str, Any]]]:
    """Yield shape, cost, model, level and the options; the level is 0 where it is not chosen."""
    for title, shape in SHAPES.items():
        name = shape["shape"]
        for flops in FLOPS[name]:
            options = {**shape, **CORES, **SIZE, "flops": flops, "rows": ROWS[name]}
            for model in ("manual", "dedicated"):
                yield title, flops, model, 0, {**options, "model": model}
            for model, how in kinds(name).items():
                for level in LEVELS:
                    yield title, flops, model, level, {**options, **how, "lanes": level}


def rate(result: Mapping[str, Any]) -> float:
    """Return the rows that come to the sink, a second."""
    return float(result["rounds"] * result["rows"] / result["seconds"])


def rates(results: list[dict[str, Any]]) -> None:
    """Add to each result the rows a second, by its work beside that of one thread alone.

    Rounds come to the sink in bursts as long as the window. So what came in a run says less than
    what was done.
    """
    alone = {
        (result["shape"], result["flops"]): rate(result) / result["work"]
        for result in results
        if result["model"] == "manual"
    }
    for result in results:
        result["rows_per_s"] = result["work"] * alone[result["shape"], result["flops"]]


def threads(played: Kept) -> None:
    """Simulate figures 8 and 9, and print their table. A run that takes too long is left out."""
    results = []

    def run(case: tuple[str, int, str, int, dict[str, Any]]) -> None:
        title, flops, model, level, options = case
        line = {"shape": title, "flops": flops, "model": model, "level": level}
        try:
            results.append({**played(**options), **line})
        except TimeoutExpired:
            print(f"{title}, {flops:,}, {model}, {level}: it takes too long", flush=True)

    spread(run, sorted(cases(), key=lambda case: case[3]))
    table(results)


def spread(run: Callable[[Any], object], cases: Any) -> None:
    """Run all cases, as many at a time as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(run, cases):
            pass


def table(results: list[dict[str, Any]]) -> None:
    """Print the rows a second, in thousands."""
    rates(results)
    found: dict[tuple[str, int, str], dict[int, float]] = {}
    for line in results:
        kind = (line["shape"], line["flops"], line["model"])
        found.setdefault(kind, {})[line["level"]] = line["rows_per_s"] / 1e3
    print("| shape | cost | model |", *(f" {level} |" for level in LEVELS), sep="")
    print("|---" * (3 + len(LEVELS)), "|", sep="")
    for (shape, flops, model), by_level in sorted(found.items()):
        if 0 in by_level:
            cells = [f"{by_level[0]:,.1f}", *[""] * (len(LEVELS) - 1)]
        else:
            cells = [f"{by_level[level]:,.1f}" if level in by_level else "" for level in LEVELS]
        print(f"| {shape} | {flops:,} | {model} |", *(f" {cell} |" for cell in cells), sep="")
