"""The time of an ask when the system rests between asks, compared with two threads and queues.

    python tests/bench/resting.py [--rounds 5] [--pauses NAME ...] [--shapes NAME ...]
                                  [--workers N ...] [--python PROGRAM ...] [--json FILE]

Pauses are of the asking thread: microseconds between two asks, `random` (any of 0, 50, 1000 and
5000), or `bursts` (20 asks back to back, then 5 ms). Shapes are who asks: `one` thread, the same
with `timeout=`, `three` threads, a `chain` of two `async` actors and an echo.

Each measurement is a process of its own, and the queues take their turn in every round. A table
shows the medians and the 99th percentiles of all rounds' asks, in microseconds, and the median of
the rounds' ratios of medians and means: above 1, callboard is slower. Several `--python` compare
builds, each against the queues.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from players import ONE
from report import table

# What a name stands for: microseconds, asks between two pauses, asks in about half a second.
PAUSES = {
    "0": ([0], 1, 20_000),
    "50": ([50], 1, 2_500),
    "1000": ([1000], 1, 400),
    "5000": ([5000], 1, 100),
    "random": ([0, 50, 1000, 5000], 1, 300),
    "bursts": ([5000], 20, 1_600),
}
SHAPES: dict[str, dict[str, object]] = {
    "one": {},
    "one, timeout=": {"timeout": 60.0},
    "three": {"askers": 3},
    "chain": {"links": 3},
}
Setting = tuple[str, str, int]  # the names of a shape and of its pauses, and the number of workers


def measure(python: str, by: str, setting: Setting) -> list[int]:
    """Return the nanoseconds of every ask of one process."""
    shape, name, workers = setting
    pauses, burst, asks = PAUSES[name]
    options = {"by": by, "pauses": pauses, "burst": burst, "workers": workers, **SHAPES[shape]}
    words = [f"{key}={json.dumps(value)}" for key, value in options.items()]
    command = [python, *ONE[1:], "runtime.resting", "none", str(asks), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    line = json.loads(done.stdout)
    if line["got"] != line["want"]:
        raise SystemExit(f"{' '.join(command)}: got {line['got']}, want {line['want']}")
    taken: list[int] = line["nanoseconds"]
    return taken


def percentile(values: list[int], part: int) -> float:
    """Return a percentile in microseconds."""
    return statistics.quantiles(values, n=100)[part - 1] / 1e3


def play(
    settings: list[Setting], pythons: list[str], rounds: int
) -> Iterator[tuple[Setting, dict[str, list[list[int]]]]]:
    """Yield what every player took in each round of a setting."""
    for setting in settings:
        players = [("queues", sys.executable), *(("callboard", python) for python in pythons)]
        taken: dict[str, list[list[int]]] = defaultdict(list)
        for number in range(rounds):
            for by, python in players if number % 2 else reversed(players):
                taken[by if by == "queues" else python].append(measure(python, by, setting))
        yield setting, taken


def row(setting: Setting, queues: list[list[int]], ours: list[list[int]]) -> list[str]:
    """Write one setting's line."""
    shape, name, workers = setting
    pairs = list(zip(ours, queues, strict=True))
    medians = statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)
    means = statistics.median(statistics.mean(a) / statistics.mean(b) for a, b in pairs)
    all_ours, all_queues = list(chain(*ours)), list(chain(*queues))
    figures = [percentile(all_queues, 50), percentile(all_ours, 50)]
    figures += [percentile(all_queues, 99), percentile(all_ours, 99)]
    return [shape, name, str(workers), *(f"{each:.1f}" for each in figures), f"{medians:.2f}",
            f"{means:.2f}"]  # fmt: skip


HEADER = ["asker", "pauses", "workers", "queues, median us", "callboard", "queues, p99 us",
          "callboard", "ratio of medians", "of means"]  # fmt: skip


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pauses", nargs="+", choices=PAUSES, default=list(PAUSES))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--workers", nargs="+", type=int, default=[1])
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--json", type=Path, help="write the nanoseconds of all asks to this file")
    options = parser.parse_args(arguments)
    settings = [
        (shape, name, workers)
        for shape in options.shapes
        for name in options.pauses
        for workers in options.workers
    ]
    rows: dict[str, list[list[str]]] = {python: [] for python in options.python}
    document = []
    for setting, taken in play(settings, options.python, options.rounds):
        for python, lines in rows.items():
            lines.append(row(setting, taken["queues"], taken[python]))
            print(python, *lines[-1], file=sys.stderr, flush=True)
        document.append({"setting": setting, "nanoseconds": taken})
    for python, lines in rows.items():
        print(f"\n{python}\n\n{table(HEADER, lines)}")
    if options.json:
        options.json.write_text(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1:])
