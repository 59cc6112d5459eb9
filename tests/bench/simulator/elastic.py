"""Figure 10: an elastic level on the simulated machine, by the product's own strategies."""

import random
from collections.abc import Mapping
from typing import Any

from callboard.scheduling.elasticity.measurement import Measurement, StageLoad, Strategy
from callboard.scheduling.elasticity.rates import Rates
from callboard.scheduling.elasticity.trends import Trends
from simulator.figures import CORES, LEVELS, ROWS, SIZE, kinds, spread
from simulator.programs import compiled, simulated
from simulator.validation import SHAPES

PERIODS = 40
NOISE = 0.03  # of a period's throughput, beside what the run itself has
RUNS = (
    ("1,000 in a row", 1),
    ("1,000 side by side", 10_000),
    ("1,000 side by side", 1),
    ("10 rows of 100", 1_000),
)


class Curve:
    """What the machine does at each level. A period is a fresh run at its level."""

    def __init__(self, machine: Mapping[str, Any], title: str, flops: int) -> None:
        shape = SHAPES[title]
        how = kinds(shape["shape"])["dynamic"]
        self._machine = machine
        self._options = {**shape, **CORES, **SIZE, **how, "flops": flops}
        self._options["rows"] = ROWS[shape["shape"]]
        self._known: dict[int, dict[str, Any]] = {}

    def at(self, level: int) -> dict[str, Any]:
        if level not in self._known:
            self._known[level] = simulated(self._machine, **self._options, lanes=level)
        return self._known[level]

    def rate(self, level: int) -> float:
        """Return the rows that all operators take, a second."""
        got = self.at(level)
        return float(sum(stage[0] for stage in got["stages"]) / got["seconds"])

    def measurement(self, level: int, noise: float) -> Measurement:
        got = self.at(level)
        seconds = got["seconds"] / noise
        stages = tuple(
            StageLoad(f"{i}", rows / seconds, cost / 1e9, lanes, 0.0, waiting * 1.0)
            for i, (rows, cost, lanes, waiting) in enumerate(got["stages"])
        )
        return Measurement(
            level=level,
            seconds=1.0,
            throughput=noise * self.rate(level),
            busy=min(float(level), got["busy"]),
            machine=(got["busy"] + got["sender"]) / CORES["cores"],
            process=got["busy"] + got["sender"],
            waiting=sum(stage[3] for stage in got["stages"]),
            stages=stages,
        )


def strategies() -> dict[str, Strategy]:
    most = max(LEVELS)
    return {
        "rates": Rates(1, most, 1.0, processors=CORES["cores"]),
        "trends": Trends(1, most, 0.05, 1.0),
    }


def run(curve: Curve, strategy: Strategy, seed: int) -> tuple[list[int], str]:
    """Return the levels of all periods, and the last reason."""
    chance = random.Random(seed)
    levels = [1]
    reason = ""
    for _ in range(PERIODS):
        decision = strategy.decide(curve.measurement(levels[-1], chance.gauss(1, NOISE)))
        levels.append(decision.level)
        reason = decision.reason
    return levels, reason


def elastic(machine: Mapping[str, Any]) -> None:
    """Print how each strategy's level goes, and its last throughput beside the best fixed one's."""

    def play(case: tuple[str, int]) -> None:
        curve = Curve(machine, *case)
        for name, strategy in strategies().items():
            levels, reason = run(curve, strategy, seed=1)
            best = max(LEVELS, key=curve.rate)
            share = curve.rate(levels[-1]) / curve.rate(best)
            print(f"{case[0]}, {case[1]:,}, {name}: {levels}; best fixed of {LEVELS}: {best};"
                  f" {share:.2f} of its rows; {reason}", flush=True)  # fmt: skip

    compiled("simulated")
    spread(play, RUNS)


def uneven(machine: Mapping[str, Any], policy: str = "latest_following") -> dict[str, Any]:
    """Simulate two operators of 0.17 and 0.21 s, with 126 workers, the second slow to start."""
    return simulated(
        machine,
        shape="uneven",
        operators=2,
        first=0.17e9,
        second=0.21e9,
        start=5e9,
        lanes=126,
        cores=128,
        rows=1,
        window=256,
        stages="shared",
        flops=1,
        warm=1_000,
        rounds=20_000,
        sample=1e8,
        policy=policy,
    )
