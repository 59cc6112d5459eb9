"""The gain of a second worker: actors on one worker and on more, placed by hand or not at all."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

from callboard import ActorSystem
from competitor import Benchmark, Competitor
from players import Game, built_actors, with_workers
from stream_suite import Plan

Placement = Callable[[int], dict[str, Any]]  # for so many workers

# Placing by hand belongs to one of the threading models, where there are several.
BY_HAND = {"threading": "assigned"} if "threading" in signature(ActorSystem).parameters else {}
PEERS = ("go", "caf")


def blocks(size: int) -> Placement:
    return lambda _: {"policy": "blocks", "size": size}


def shares(actors: int) -> Placement:
    """Give each worker an equal share of the actors, neighbours together."""
    return lambda workers: {"policy": "blocks", "size": -(-actors // workers)}


APART, TOGETHER = blocks(1), blocks(1_000_000)
TITLES = {"native": "callboard, native", "Python": "callboard", "mixed": "callboard"}


@dataclass(frozen=True)
class Work:
    """A program, how it is placed by hand, and what is wanted of it without that."""

    title: str
    module: str
    size: int  # for Python actors
    well: Placement
    badly: Placement = APART
    options: Mapping[str, Any] = field(default_factory=dict)  # for the module
    part: str = ""  # what the peers call it
    natively: float = 2  # native actors get so many times more to do
    wanted: float = 0.9  # the rate with 2 workers against that with 1
    against_go: float = 0  # natively, both with 2 workers; 0: as it comes

    @property
    def kinds(self) -> Sequence[str]:
        return ("native", "Python") if self.part else ("mixed",)

    def players(self, plan: Plan) -> Iterator[Competitor]:
        for workers in plan.workers:
            for kind, (way, share, options) in product(self.kinds, self.ways(plan, workers)):
                yield self.ours(plan, kind, workers, share, way, **options)
            if self.part:
                peers = Game(self.part, int(self.size * self.natively), 400, plan.smoke)
                yield from (peers.by(program, workers) for program in PEERS)

    def ways(self, plan: Plan, workers: int) -> list[tuple[str, float, dict[str, Any]]]:
        """List how actors get their workers, and how much there is to do: the bad way is slow."""
        models = [(model, 1, {"threading": model}) for model in plan.models]
        by_hand = (("placed well", 1, self.well), ("placed badly", 1 / 16, self.badly))
        placed = [
            (way, share, {"placement": json.dumps(place(workers)), **BY_HAND})
            for way, share, place in by_hand
            if workers > 1
        ]
        return [("", 1, {}), *models, *placed]

    def ours(
        self, plan: Plan, kind: str, workers: int, share: float, way: str, **options: Any
    ) -> Competitor:
        """Let callboard play."""
        size = self.size * share * (self.natively if kind == "native" else 1)
        game = Game(self.module, int(size), 400, plan.smoke)
        if kind == "native":
            player = game.natively(workers, **self.options, **options)
        else:
            player = game.on("callboard", workers=workers, **self.options, **options)
        absent = built_actors() if kind == "mixed" else player.absent
        return replace(player, name=name_of(kind, workers, way), absent=absent)


def name_of(kind: str, workers: int, way: str = "") -> str:
    """Name callboard's actors as competitors; without a way nobody says where they live."""
    title = with_workers(TITLES[kind], workers)
    return f"{title}, {way}" if way else title


def rings(title: str, part: str, size: int, rings: int = 1, **more: Any) -> Work:
    options = {"size": size, "rings": rings}
    well = TOGETHER if rings == 1 else blocks(size)
    hops = 4_000_000 // rings
    return Work(title, "savina.thread_ring", hops, well, options=options, part=part, **more)


def pipeline(stages: int, window: int, part: str, **more: Any) -> Work:
    options = {"stages": stages, "window": window}
    items = 4_000_000 // stages
    well = shares(stages + 1)
    more = {"options": options, "part": part, "natively": 8, **more}
    return Work(f"Pipeline of {stages:,}", "savina.pipeline", items, well, **more)


WORKS = {
    "ping_pong": rings("Ping-pong", "ping_pong", 2, against_go=3),
    "ring": rings("Ring of 100", "thread_ring", 100, against_go=3),
    "pairs": rings("8 pairs", "pairs", 2, 8, wanted=1.8, against_go=3),
    "rings": rings("8 rings of 100", "rings", 100, 8, wanted=1.8, against_go=3),
    "big": Work(
        "Big", "savina.big", 12_000, APART, TOGETHER, part="big", wanted=1.25, against_go=3
    ),
    "fork_join_throughput": Work(
        "Fork-join, throughput", "savina.fork_join_throughput", 8_000_000, TOGETHER,
        part="fork_join_throughput",
    ),
    "fork_join_create": Work(
        "Fork-join, creation", "savina.fork_join_create", 400_000, TOGETHER,
        part="fork_join_create", natively=1 / 2,
    ),
    "banking": Work("Banking", "savina.banking", 200_000, APART, TOGETHER, part="banking"),
    "pipeline_10": pipeline(10, 1_024, "pipeline_10", against_go=3),
    "pipeline_100": pipeline(100, 1_024, "pipeline_100", against_go=3),
    "pipeline_1000": pipeline(1_000, 4_096, "native_pipeline", against_go=3),
    "mixed": Work(
        "4 native pairs, 4 in Python", "runtime.mixed", 200_000, blocks(4), options={"pairs": 4}
    ),
}  # fmt: skip


def benchmark(name: str, plan: Plan) -> Benchmark:
    work = WORKS[name]
    title = f"{work.title}, by workers"
    unit = "actors/s" if name == "fork_join_create" else "messages/s"
    return Benchmark(f"workers_{name}", title, unit, list(work.players(plan)), costs=True)


def asks(plan: Plan) -> Benchmark:
    game = Game("runtime.ask", 100_000, 100, plan.smoke)
    players = [
        game.on("callboard", name_of("Python", workers), workers=workers)
        for workers in plan.workers
    ]
    return Benchmark("workers_ask", "Ask from the main thread, by workers", "asks/s", players)


WORKERS: dict[str, Callable[[Plan], Benchmark]] = {
    **{f"workers_{name}": partial(benchmark, name) for name in WORKS},
    "workers_ask": asks,
}
