"""Draw the picture of the README from a kept run: what a core does of Nexmark.

    python tests/bench/compared_picture.py docs/compared.json docs/compared

It writes `docs/compared-light.svg` and `docs/compared-dark.svg`. A page shows the one that fits:

    <picture>
      <source media="(prefers-color-scheme: dark)" srcset="docs/compared-dark.svg">
      <img alt="Nexmark, rows a second on one core" src="docs/compared-light.svg">
    </picture>
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from report import quantity

QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8")
BARS = {  # as the suite calls them, with their colours in light and in dark
    "callboard, Arrow batches": ("#0969da", "#58a6ff"),
    "callboard": ("#54aeff", "#1f6feb"),
    "Bytewax": ("#8c959f", "#8b949e"),
}
THEMES = {"light": ("#1f2328", "#d1d9e0"), "dark": ("#e6edf3", "#3d444d")}


def draw(document: dict[str, Any], path: Path, theme: int) -> None:
    text, line = [*THEMES.values()][theme]
    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "compared", "font.family": "sans-serif",
         "text.color": text, "axes.labelcolor": text, "xtick.color": text, "ytick.color": text}
    )  # fmt: skip
    figure, axis = plt.subplots(figsize=(8.4, 3.6))
    width = 0.8 / len(BARS)
    for place, (name, colours) in enumerate(BARS.items()):
        rates = [
            document["benchmarks"][f"nexmark_{query}"]["competitors"][name]["median"]
            for query in QUERIES
        ]
        at = [query + (place - 1) * width for query in range(len(QUERIES))]
        axis.bar(at, rates, width * 0.92, label=name, color=colours[theme])
        for x, rate in zip(at, rates, strict=True):
            axis.annotate(quantity(rate), (x, rate), (0, 2), textcoords="offset points",
                          ha="center", va="bottom", fontsize=6.5)  # fmt: skip
    axis.set_yscale("log")
    axis.set_ylim(4e4, None)
    axis.set_xticks(range(len(QUERIES)), QUERIES)
    axis.set_ylabel("rows/s, one core")
    axis.set_title("Nexmark, rows a second on one core (log scale)", fontsize=10)
    axis.grid(axis="y", color=line, linewidth=0.6)
    axis.set_axisbelow(True)
    for side, spine in axis.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(line)
    axis.tick_params(length=0, which="both")
    axis.legend(ncols=len(BARS), frameon=False, fontsize=8, loc="upper right")
    figure.tight_layout()
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def main(source: str, target: str) -> None:
    document = json.loads(Path(source).read_text())
    for theme, name in enumerate(THEMES):
        draw(document, Path(f"{target}-{name}.svg"), theme)


if __name__ == "__main__":
    main(*sys.argv[1:])
