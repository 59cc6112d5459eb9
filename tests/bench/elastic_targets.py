"""The targets of the elastic level of workers."""

from collections.abc import Iterator
from itertools import product

from elastic.levels import PHASES
from elastic_suite import (
    ACTORS,
    BESIDE,
    CELLS,
    COSTS,
    SLEEPERS,
    STRATEGIES,
    elastic,
    fixed,
    name_of_actors,
)
from measures import Target, best_of, greatest, noted, ratio, value


def of_levels(
    benchmark: str, title: str, strategy: str, wanted: float = 0.95, most: int = 2
) -> Iterator[Target]:
    """What a level shall be worth that a strategy has found, and when it shall be found."""
    ours, levels = elastic(strategy), (fixed(1), fixed(most))
    best = best_of(benchmark, levels, ours)
    yield Target(f"{title}, {ours}, against the best fixed level", wanted, best)
    found = noted(benchmark, "settled", ours)
    yield Target("The same, until the level is found", 5, found, "periods", at_most=True)


ELASTIC_TARGETS = (
    *(
        target
        for (shape, flops), strategy in product(CELLS, STRATEGIES)
        for target in of_levels(
            f"elastic_{shape}_{flops}",
            f"1,000 operators, {shape}, {flops:,} operations a row",
            strategy,
            0.9 if (shape, flops) == ("wide", 1) else 0.95,
        )
    ),
    *(
        target
        for title, strategy in product(ACTORS, STRATEGIES)
        for target in of_levels(name_of_actors(title), f"Actors, {title}", strategy)
    ),
    *of_levels("elastic_asleep", "Operators that sleep", "rates", most=SLEEPERS),
    *(
        Target(
            f"Changes of level in 50 periods of the same load, {shape}, {strategy}",
            0,
            noted(f"elastic_held_{shape}", "changes", elastic(strategy)),
            "changes",
            at_most=True,
        )
        for shape, strategy in product(COSTS, STRATEGIES)
    ),
    *(
        Target(
            f"A load that changes, until the level follows, {strategy}",
            5,
            greatest(*(value("elastic_load", f"{phase}, {strategy}") for phase in PHASES)),
            "periods",
            at_most=True,
        )
        for strategy in STRATEGIES
    ),
    *(
        Target(
            f"An idle elastic system, {strategy}",
            1.0,
            value("elastic_idle", strategy),
            "% of a core",
            at_most=True,
        )
        for strategy in STRATEGIES
    ),
    *(
        Target(
            f"A change of level until all rest, beside a busy {beside}, {part}",
            1_000,
            value("elastic_change", f"{beside}, rest, {part}"),
            "us",
            at_most=True,
        )
        for beside, part in product(BESIDE, ("median", "p99"))
    ),
    *(
        Target(
            f"2 of 2 workers, {elastic(strategy)}, against 2",
            0.98,
            ratio("elastic_cost", "fixed", elastic(strategy)),
        )
        for strategy in STRATEGIES
    ),
)
