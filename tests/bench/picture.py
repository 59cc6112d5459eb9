"""Draw a run: a panel for each benchmark, a bar for each competitor, on a logarithmic scale."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLUMNS = 3
COLOURS = {"ours": "#c8441b", "peer": "#8aa0b5", "floor": "#d9d4c7"}


def draw(document: dict[str, Any], path: Path) -> None:
    """Write the picture of a run's document to `path`, in the format that its name says."""
    panels = [
        (benchmark, bars)
        for benchmark in document["benchmarks"].values()
        if len(bars := valid(benchmark)) > 1
    ]
    rows = -(-len(panels) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(15, 3.4 * rows), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for axis, (benchmark, bars) in zip(axes.flat, panels, strict=False):
        axis.set_visible(True)
        panel(axis, benchmark, bars)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def valid(benchmark: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List the competitors that have a median, slowest first."""
    measured = [(n, c) for n, c in benchmark["competitors"].items() if "median" in c]
    return sorted(measured, key=lambda pair: pair[1]["median"])


def panel(axis: Any, benchmark: dict[str, Any], bars: list[tuple[str, dict[str, Any]]]) -> None:
    """Draw one benchmark: medians as bars, the spread as a line over each."""
    medians = [each["median"] for _, each in bars]
    below = [each["median"] - min(each["values"]) for _, each in bars]
    above = [max(each["values"]) - each["median"] for _, each in bars]
    axis.barh(
        [name for name, _ in bars],
        medians,
        xerr=[below, above],
        color=[COLOURS[each["role"]] for _, each in bars],
        hatch=["//" if each["kind"] == "native" else "" for _, each in bars],
        edgecolor="white",
        error_kw={"elinewidth": 1},
    )
    axis.set_xscale("log")
    axis.set_title(benchmark["title"], fontsize=10)
    axis.set_xlabel(f"{benchmark['unit']} (hatched: native)", fontsize=8)
    axis.tick_params(labelsize=8)
