"""Predictions against the real runtime, on the machine that was measured, or for more cores."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.programs import real, simulated

SHAPES: dict[str, dict[str, Any]] = {
    "1,000 in a row": {"shape": "pipeline", "operators": 1_000},
    "1,000 side by side": {"shape": "wide", "operators": 1_000},
    "10 rows of 100": {"shape": "mixed", "operators": 1_000, "width": 10},
}
FLOPS = {"pipeline": (1, 100, 1_000), "wide": (1, 10_000, 100_000), "mixed": (1, 100, 1_000)}
ROWS = {"pipeline": 16, "wide": 1_000, "mixed": 160}  # of a round; 512 in a row of the lightest
SECONDS = 0.2  # about, of work


def ways(workers: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return the ways in which a graph may run."""
    found: dict[str, dict[str, Any]] = {"`manual`": {"model": "manual"}}
    for lanes in workers:
        found[f"{lanes} workers" if lanes > 1 else "1 worker"] = {"lanes": lanes}
        if lanes > 1:
            found[f"{lanes}, one at a time"] = {"lanes": lanes, "stages": "ordered"}
    return {**found, "`dedicated`": {"model": "dedicated"}}


def cases(workers: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    for title, shape in SHAPES.items():
        for flops in FLOPS[shape["shape"]]:
            if flops == max(FLOPS["wide"]):
                continue  # it takes minutes, and says no more than a tenth of it
            for name, how in ways(workers).items():
                if name == "`dedicated`" and shape["shape"] == "mixed":
                    continue  # a million wake-ups, and other ones in each run
                size = sized(shape, flops, least=4 * max(workers))
                yield f"{title} | {flops:,} | {name}", {**size, **how}


def sized(shape: dict[str, Any], flops: int, least: int) -> dict[str, Any]:
    """Give a graph so many rounds that they take a while, and many times the window."""
    rows = 512 if shape["shape"] == "pipeline" and flops == 1 else ROWS[shape["shape"]]
    ns = 1_000 * rows * (0.6 + 0.8 * flops) / (1_000 if shape["shape"] == "wide" else 1) + 20_000
    if shape["shape"] == "mixed":
        ns /= 10
    window = max(least, 64 if ns < 2e6 else 16 if ns < 2e7 else 8)
    rounds = int(min(max(SECONDS * 1e9 / ns, 6 * window), 4_000))
    size = {"rows": rows, "rounds": rounds, "window": window, "warm": 2 * window}
    return {**shape, **size, "flops": flops}


def predict(machine: Mapping[str, Any], workers: Sequence[int], cores: int) -> None:
    """Print predictions for a machine that is not there."""
    print("| shape | cost | | predicted, us of a round | of all processors |")
    print("|---|---|---|---|---|")
    for name, options in cases(workers):
        got = simulated(machine, **options, cores=cores)
        time, cpu = (1e6 * got[key] / got["rounds"] for key in ("seconds", "cpu"))
        print(f"| {name} | {time:,.1f} | {cpu:,.1f} |", flush=True)


def validate(machine: Mapping[str, Any], rounds: int, workers: Sequence[int], cores: int) -> None:
    """Print the microseconds of a round in each case: the time, and that of all processors.

    In no rounds nothing is measured.
    """
    if rounds == 0:
        predict(machine, workers, cores)
        return
    all_cases = list(cases(workers))
    took: dict[str, list[float]] = {name: [] for name, _ in all_cases}
    used: dict[str, list[float]] = {name: [] for name, _ in all_cases}
    for _ in range(rounds):
        for name, options in all_cases:
            got = real(**options)
            took[name].append(1e6 * got["seconds"] / got["rounds"])
            used[name].append(1e6 * got["cpu"] / got["rounds"])
    print("| shape | cost | | predicted | measured | least to most | error | processors | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, options in all_cases:
        got = simulated(machine, **options, cores=cores)
        want, cpu = (1e6 * got[key] / got["rounds"] for key in ("seconds", "cpu"))
        have, have_cpu = statistics.median(took[name]), statistics.median(used[name])
        print(
            f"| {name} | {want:,.1f} | {have:,.1f} |"
            f" {min(took[name]):,.1f} to {max(took[name]):,.1f} | {want / have - 1:+.0%} |"
            f" {have_cpu:,.1f} | {cpu / have_cpu - 1:+.0%} |",
            flush=True,
        )
