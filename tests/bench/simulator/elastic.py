"""Figure 10: an elastic level on the simulated machine, by the product's own strategies."""

import random
import statistics
from collections.abc import Mapping
from typing import Any

from callboard.scheduling.elasticity.measurement import Measurement, StageLoad, Strategy
from callboard.scheduling.elasticity.rates import Rates
from callboard.scheduling.elasticity.trends import Trends
from simulator.figures import CORES, LEVELS, ROWS, SIZE, kinds, spread
from simulator.programs import Kept, simulated, simulated_periods
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

    def __init__(self, played: Kept, title: str, flops: int) -> None:
        shape = SHAPES[title]
        how = kinds(shape["shape"])["dynamic"]
        self._played = played
        self._options = {**shape, **CORES, **SIZE, **how, "flops": flops}
        self._options["rows"] = ROWS[shape["shape"]]

    def at(self, level: int) -> dict[str, Any]:
        return self._played(**self._options, lanes=level)

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


def elastic(played: Kept) -> None:
    """Print how each strategy's level goes, and its last throughput beside the best fixed one's."""

    def play(case: tuple[str, int]) -> None:
        curve = Curve(played, *case)
        for name, strategy in strategies().items():
            levels, reason = run(curve, strategy, seed=1)
            best = max(LEVELS, key=curve.rate)
            share = curve.rate(levels[-1]) / curve.rate(best)
            print(f"{case[0]}, {case[1]:,}, {name}: {levels}; best fixed of {LEVELS}: {best};"
                  f" {share:.2f} of its rows; {reason}", flush=True)  # fmt: skip

    spread(play, RUNS)


def change(machine: Mapping[str, Any], changes: int = 400) -> None:
    """Print how long a change of level takes until all that is suspended rests.

    The graph is that of the benchmark `elastic_change`, and the call takes as long as there.
    """
    print("| from | to | median, us | most |")
    print("|---" * 4, "|", sep="")
    for few, many in ((1, 2), (8, 16), (64, 128)):
        graph: dict[str, Any] = {**SHAPES["10 rows of 100"], "flops": 100, "rows": 160}
        periods = simulated_periods(
            machine,
            [few, many] * (changes // 2),
            **graph,
            cores=many + 2,  # one for the sender, and one for the thread that changes it
            of_socket=CORES["of_socket"],
            lanes=many,
            window=max(32, 4 * many),
            period=2e6,
            call=8e3,
        )
        rests = [1e6 * period["rest"] for period in periods[1::2]]
        cells = f"{statistics.median(rests):,.0f} | {max(rests):,.0f}"
        print(f"| {many} | {few} | {cells} |", flush=True)


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
