"""Benchmarks of Nexmark: queries on Python rows and on Arrow batches, compared with Bytewax."""

from collections.abc import Callable, Iterator
from functools import partial

from competitor import Benchmark
from measures import Target, ratio, value
from players import Game

TITLES = {
    "q0": "pass bids on",
    "q1": "prices in euros",
    "q2": "bids on some auctions",
    "q3": "sellers near by, and their auctions",
    "q4": "mean price of a category",
    "q5": "hot auctions, in sliding windows",
    "q7": "highest bids, in tumbling windows",
    "q8": "new users that sell",
}
JOINS = ("q3", "q8")  # of persons and auctions, 4 of 50 events
WITH_BATCHES = ("q0", "q1", "q2", "q5", "q7")  # those that Bytewax can have on batches
EVENTS = 200_000
BATCHES = "callboard, Arrow batches"


def query(name: str, smoke: bool) -> Benchmark:
    game = Game("nexmark.playing", EVENTS * (4 if name in JOINS else 1), 2_000, smoke)
    long = 16 if name in JOINS else 4  # batches are quick, so they get more events
    players = [
        game.alone("callboard", "ours", query=name, by="rows"),
        game.alone(BATCHES, "ours", long, query=name, by="batches"),
        game.alone("Bytewax", "peer", query=name, by="bytewax"),
    ]
    if name in WITH_BATCHES:
        title = "Bytewax, Arrow batches"
        players.append(game.alone(title, "peer", long, query=name, by="bytewax_batches"))
    title = "DuckDB, all rows at once"
    players.append(game.alone(title, "floor", long, query=name, by="duckdb"))
    return Benchmark(f"nexmark_{name}", f"Nexmark {name}: {TITLES[name]}", "rows/s", players)


def targets() -> Iterator[Target]:
    for name in TITLES:
        benchmark = f"nexmark_{name}"
        if name in ("q0", "q1", "q2"):
            text = f"Nexmark {name} on Arrow batches, a core"
            yield Target(text, 1e6, value(benchmark, BATCHES), "rows/s")
        text = f"Nexmark {name} on Arrow batches against Bytewax"
        yield Target(text, 10.0, ratio(benchmark, "Bytewax", BATCHES))


NEXMARK: dict[str, Callable[[bool], Benchmark]] = {
    f"nexmark_{name}": partial(query, name) for name in TITLES
}
