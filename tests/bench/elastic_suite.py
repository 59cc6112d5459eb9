"""The elastic level of workers against the best fixed one: 1,000 operators, and actors."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from competitor import Benchmark, Competitor
from elastic.levels import PHASES, SETTLING
from players import Game, built_actors, with_workers
from stream_suite import Plan

COSTS = {  # of a row at an operator, in floating-point operations, as in the paper
    "pipeline": (1, 100, 1_000),
    "wide": (1, 10_000, 100_000),
    "mixed": (1, 100, 1_000),
}
CELLS = [(shape, flops) for shape, costs in COSTS.items() for flops in costs]
STRATEGIES = ("rates", "trends")
BESIDE = ("graph", "actors")
LAST = 5  # periods that are measured
SLEEPERS = 16  # workers, of operators that sleep
HELD = 50  # periods in which a found level shall stay
ACTORS: dict[str, dict[str, Any]] = {
    "16 native, 1,000": {"kind": "native", "actors": 16, "flops": 1_000},
    "16 native, 100,000": {"kind": "native", "actors": 16, "flops": 100_000},
    "1 native, 1,000": {"kind": "native", "actors": 1, "flops": 1_000},
    "16 in Python, 100": {"kind": "python", "actors": 16, "flops": 100},
}


def fixed(workers: int) -> str:
    return with_workers("dynamic", workers)


def elastic(strategy: str) -> str:
    return f"elastic, {strategy}"


def play(plan: Plan, module: str, periods: int) -> Game:
    """Make the game of a module that is played for so many periods."""
    return Game(f"elastic.{module}", 7 if plan.smoke else periods, 1, smoke=False)


def levels(game: Game, plan: Plan, **options: Any) -> Iterator[Competitor]:
    """Play with each number of workers, and let each strategy find how many of the most."""
    for workers in plan.workers:
        yield game.operators(fixed(workers), workers=workers, **options)
    for strategy in STRATEGIES:
        options |= {"workers": max(plan.workers), "strategy": strategy}
        yield game.operators(elastic(strategy), **options)


def throughput(plan: Plan, shape: str, flops: int) -> Benchmark:
    game = play(plan, "throughput", SETTLING + LAST)
    players = [*levels(game, plan, shape=shape, flops=flops)]
    for model in ("manual", "dedicated"):
        players.append(game.operators(model, shape=shape, flops=flops, threading=model))
    title = f"1,000 operators, {shape}, {flops:,} operations a row"
    name = f"elastic_{shape}_{flops}"
    return Benchmark(name, title, "rows/s", players, costs=True, levels=True)


def holding(plan: Plan, shape: str, flops: int) -> Benchmark:
    """See how often a level changes that has been found, while the load is the same."""
    game = play(plan, "throughput", SETTLING + HELD)
    players = [
        each
        for each in levels(game, plan, shape=shape, flops=flops)
        if each.name.startswith("elastic")
    ]
    title = f"A level that stays for {HELD} periods: {shape}, {flops:,} operations a row"
    return Benchmark(f"elastic_held_{shape}", title, "rows/s", players, costs=True, levels=True)


def asleep(plan: Plan) -> Benchmark:
    """Let workers sleep in place of working: so a few cores have many that are idle at times."""
    game = play(plan, "throughput", SETTLING + LAST)
    several = replace(plan, workers=(1, SLEEPERS))
    players = levels(game, several, shape="asleep", operators=10, flops=14_000)
    title = "Ten operators that sleep for 14 us a row"
    return Benchmark("elastic_asleep", title, "rows/s", [*players], costs=True, levels=True)


def name_of_actors(title: str) -> str:
    return "elastic_actors_" + title.replace(" ", "_").replace(",", "")


def actors(plan: Plan, title: str) -> Benchmark:
    game = play(plan, "actors", SETTLING + LAST)
    players = [replace(each, absent=built_actors()) for each in levels(game, plan, **ACTORS[title])]
    of_all = f"Actors that compute: {title} operations a message"
    return Benchmark(name_of_actors(title), of_all, "messages/s", players, costs=True, levels=True)


def changing_load(plan: Plan) -> Benchmark:
    game = play(plan, "changing_load", SETTLING)
    players = [
        game.operators(f"{phase}, {strategy}", phase=phase, strategy=strategy)
        for strategy, phase in product(STRATEGIES, PHASES)
    ]
    title = "Periods until the level follows a load that changes"
    return Benchmark("elastic_load", title, "periods", players)


def idle(plan: Plan) -> Benchmark:
    game = play(plan, "changing_load", 15)
    players = [game.operators(each, phase="idle", strategy=each) for each in STRATEGIES]
    return Benchmark("elastic_idle", "An idle elastic system", "% of a core", players)


def changing_level(plan: Plan) -> Benchmark:
    game = play(plan, "changing_level", 1_000)
    players = [
        game.operators(f"{beside}, {what}, {each}", beside=beside, measure=what, quantile=each)
        for beside, what, each in product(BESIDE, ("call", "rest"), ("median", "p99", "worst"))
    ]
    absent = built_actors()
    players = [replace(each, absent=each.absent or absent) for each in players]
    return Benchmark("elastic_change", "A change of level beside work", "us", players)


def looking(plan: Plan) -> Benchmark:
    game = play(plan, "changing_level", 100)
    players = [game.operators(each, measure="look", quantile=each) for each in ("median", "worst")]
    title = "Processor time of a look at 1,000 operators"
    return Benchmark("elastic_look", title, "us", players)


def own_cost(plan: Plan) -> Benchmark:
    game = play(plan, "throughput", 3 * LAST)
    options: dict[str, Any] = {"shape": "mixed", "flops": 100, "workers": 2, "period": 1.0}
    players = [game.operators("fixed", **options)]
    for strategy in STRATEGIES:
        more: dict[str, Any] = {"strategy": strategy, "least": 2}
        players.append(game.operators(elastic(strategy), **options, **more))
    title = "What elasticity costs: 2 workers, and 2 of 2, once a second"
    return Benchmark("elastic_cost", title, "rows/s", players, costs=True)


ELASTIC: dict[str, Callable[[Plan], Benchmark]] = {
    **{
        f"elastic_{shape}_{flops}": partial(throughput, shape=shape, flops=flops)
        for shape, flops in CELLS
    },
    **{
        f"elastic_held_{shape}": partial(holding, shape=shape, flops=costs[1])
        for shape, costs in COSTS.items()
    },
    **{name_of_actors(title): partial(actors, title=title) for title in ACTORS},
    "elastic_asleep": asleep,
    "elastic_load": changing_load,
    "elastic_idle": idle,
    "elastic_change": changing_level,
    "elastic_look": looking,
    "elastic_cost": own_cost,
}
