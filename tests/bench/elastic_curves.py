"""The strategies on modelled curves, the table of docs/streams-benchmarks.md."""

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import mean

sys.path.append(str(Path(__file__).parents[2]))

from callboard.scheduling.elasticity.controller import Strategy
from callboard.scheduling.elasticity.rates import Rates
from elastic.trends import Trends
from tests.scheduling.elasticity.model import SHAPES, Capacity, System, changes, uniform

MOST = 64
STARTS = (1, 4, 16, 64)
SEEDS = 8
PERIODS = 100

Make = Callable[[int, int], Strategy]


def run(make: Make, capacity: Capacity, noise: float) -> str:
    """Say the periods to settle, the worst and mean share after them, and changes after 50."""
    settled, shares, late = [], [], []
    for start in STARTS:
        for seed in range(SEEDS if noise else 1):
            system = System(make(1, MOST), capacity, start, noise=uniform(Random(seed), noise))
            system.run(PERIODS)
            levels = [start, *system.levels]
            moves = [at for at in range(1, len(levels)) if levels[at] != levels[at - 1]]
            settled.append(max(moves, default=0))
            best = max(map(capacity, range(1, MOST + 1)))
            shares.append(mean(capacity(level) for level in levels[51:]) / best)
            late.append(changes(levels[50:]))
    return f"{max(settled):3} {min(shares):.2f} {mean(shares):.2f} {max(late):2}"


def main() -> None:
    """Print a row for each shape."""
    for name, capacity in SHAPES.items():
        cells = [run(make, capacity, noise) for make in (Rates, Trends) for noise in (0.0, 0.1)]
        print(f"{name:24}", *cells, flush=True)


if __name__ == "__main__":
    main()
