"""Benchmarks of summaries of frequent keys."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from competitor import Benchmark, Role
from players import Game

ALPHAS = (0.5, 1.0, 1.5, 2.0, 3.0)
OTHERS: tuple[tuple[str, str, Role, float], ...] = (
    ("DataSketches", "datasketches", "peer", 0.2),
    ("Counter", "counter", "floor", 1.0),
)
DESIGNS: tuple[tuple[str, Role, float], ...] = (
    ("partitioned", "ours", 1.0),
    ("sequential", "floor", 1.0),
)
# In C++: those of the paper.
NATIVE_DESIGNS = ("Cooperative", "Shared", "Independent")


def counting(smoke: bool, keys: str) -> Benchmark:
    game = Game("frequency.counting_keys", 1_000_000, 2_000, smoke)
    players = []
    for alpha in ALPHAS:
        options: Any = {"keys": keys, "alpha": alpha}
        players.append(game.alone(f"callboard, alpha {alpha}", "ours", by="callboard", **options))
        for name, by, part, rate in OTHERS:
            players.append(game.alone(f"{name}, alpha {alpha}", part, rate, by=by, **options))
    title = f"The most frequent of a million {keys}"
    return Benchmark(f"frequency_{keys}", title, "keys/s", players)


def asking(smoke: bool) -> Benchmark:
    game = Game("frequency.counting_keys", 1_000_000, 2_000, smoke)
    players = [
        game.alone(f"{name}, alpha {alpha}", "ours", alpha=alpha, every=50_000, ask=ask)
        for alpha in ALPHAS
        for name, ask in (("50,000 at a time", False), ("top(25) after each", True))
    ]
    return Benchmark("frequency_asking", "The same, asked on the way", "keys/s", players)


def streams(smoke: bool) -> Benchmark:
    game = Game("frequency.streams_of_keys", 2_000_000, 4_000, smoke)
    players = [
        game.alone(f"{design}, alpha {alpha}", role, rate, design=design, alpha=alpha)
        for alpha in ALPHAS
        for design, role, rate in DESIGNS
    ]
    for alpha, design in product(ALPHAS, NATIVE_DESIGNS):
        player = game.by("summaries", 2, design, str(alpha))
        players.append(replace(player, name=f"{design} in C++, alpha {alpha}", role="peer"))
    return Benchmark("frequency_streams", "Two streams, a thread for each", "keys/s", players)


def memory(smoke: bool, keys: str) -> Benchmark:
    game = Game("frequency.memory", 1_000_000, 2_000, smoke)
    names = (("callboard", "callboard", "ours", 1.0), *OTHERS)
    players = [
        game.alone(f"{name}, alpha {alpha}", part, by=by, keys=keys, alpha=alpha)
        for alpha in ALPHAS[:2]  # what skewed streams leave is too little to be seen
        for name, by, part, _ in names
    ]
    title = f"What is held after a million {keys}"
    return Benchmark(f"frequency_memory_{keys}", title, "MB", players)


def on_spark(smoke: bool) -> Benchmark:
    game = Game("frequency.on_spark", 2_000_000, 10_000, smoke)
    ways: tuple[tuple[str, str, Role], ...] = (
        ("callboard", "hot_keys", "ours"),
        ("approx_top_k", "approx_top_k", "peer"),
        ("groupBy, count", "group_by", "floor"),
    )
    players = [
        game.alone(f"{name}, alpha {alpha}", part, by=by, alpha=alpha)
        for alpha in ALPHAS[:: 4 if smoke else 2]
        for name, by, part in ways
    ]
    return Benchmark("frequency_spark", "Hot keys of a frame, two cores", "keys/s", players)


def errors(smoke: bool) -> Benchmark:
    game = Game("frequency.errors", 2_000_000, 4_000, smoke)
    players = [
        game.alone(f"{design}, alpha {alpha}", role, design=design, alpha=alpha)
        for alpha in ALPHAS[:3]
        for design, role, _ in DESIGNS
    ]
    return Benchmark("frequency_errors", "The worst count, above the true one", "keys", players)


FREQUENCY: dict[str, Callable[[bool], Benchmark]] = {
    "frequency_integers": partial(counting, keys="integers"),
    "frequency_texts": partial(counting, keys="texts"),
    "frequency_asking": asking,
    "frequency_errors": errors,
    "frequency_memory_integers": partial(memory, keys="integers"),
    "frequency_memory_texts": partial(memory, keys="texts"),
    "frequency_spark": on_spark,
    "frequency_streams": streams,
}
