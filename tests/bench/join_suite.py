"""Benchmarks of joins: the band join of Gulisano et al. 2015, and a join of real rows."""

from collections.abc import Callable
from itertools import product

from competitor import Benchmark
from players import Game


def by_function(smoke: bool) -> Benchmark:
    game = Game("streams.band_join", 20_000, 2_000, smoke)
    players = [
        game.alone("callboard", "ours", by="graph", where="function"),
        game.alone("callboard, 2 processes", "ours", by="graph", where="function", processes=2),
        game.alone("callboard, Band", "ours", 20, by="graph"),
        game.alone("plain Python", "floor", by="plain"),
        game.alone("Bytewax, stateful_flat_map", "peer", by="stateful"),
        game.alone("Bytewax, join_window", "peer", 0.1, by="window"),
    ]
    title = "Band join of Python rows, 500 of either stream in the window, by a Python function"
    return Benchmark("join_python", title, "rows/s", players)


def by_band(smoke: bool) -> Benchmark:
    game = Game("streams.band_join", 400_000, 2_000, smoke)
    players = [
        game.alone("callboard", "ours", by="graph", within=5_000),
        game.alone("callboard, manual", "ours", by="graph", within=5_000, threading="manual"),
        game.alone("DuckDB, all rows at once", "peer", 0.1, by="duckdb", within=5_000),
        game.alone("Polars, all rows at once", "peer", 0.05, by="polars", within=5_000),
    ]
    title = "Band join of Python rows, 5,000 of either stream in the window"
    return Benchmark("join_band", title, "rows/s", players)


def latency(smoke: bool) -> Benchmark:
    game = Game("streams.join_latency", 80_000, 2_000, smoke)
    threads = {"on the caller's thread": "manual", "on a worker": "dynamic"}
    players = [
        game.alone(f"{where}, {measure}", "ours", threading=threading, measure=measure)
        for (where, threading), measure in product(threads.items(), ("median", "p99"))
    ]
    return Benchmark("join_latency", "A pair of a band join, after it is ready", "us", players)


def changes(smoke: bool) -> Benchmark:
    game = Game("streams.folder_pairs", 400_000, 2_000, smoke)
    players = [
        game.alone("callboard", "ours", by="graph"),
        game.alone("plain Python", "floor", by="plain"),
        game.alone("DuckDB, all rows at once", "peer", by="duckdb"),
    ]
    title = "Who worked on a folder within an hour of another, in a real stream"
    return Benchmark("join_changes", title, "rows/s", players)


def in_lanes(smoke: bool) -> Benchmark:
    game = Game("streams.native_join", 200_000, 2_000, smoke)
    players = [
        game.operators("1 lane", lanes=1, workers=1),
        game.operators("2 lanes, 1 worker", lanes=2, workers=1),
        game.operators("2 lanes, 2 workers", lanes=2, workers=2),
    ]
    title = "Each pair of 5,000 rows of either stream compared by a C function"
    return Benchmark("join_lanes", title, "rows/s", players)


def memory(smoke: bool) -> Benchmark:
    game = Game("streams.join_memory", 100_000, 2_000, smoke)
    players = [
        *(game.alone(f"{n} windows", "ours", n, by="join") for n in (5, 15)),
        game.alone("the rows alone, in a deque", "floor", 5, by="deques"),
    ]
    return Benchmark("join_memory", "A band join with 100,000 rows in its window", "MB", players)


def on_spark(smoke: bool) -> Benchmark:
    game = Game("streams.join_on_spark", 2_000, 2_000, smoke)
    other = Game("streams.band_join", 20_000, 2_000, smoke)
    players = [
        other.alone("callboard", "ours", by="graph", where="function"),
        other.alone("callboard, Band", "ours", 20, by="graph"),
        game.alone("Spark, two streams", "peer"),
    ]
    title = "The band join, beside Spark's join of streams on two cores"
    return Benchmark("join_spark", title, "rows/s", players)


JOINS: dict[str, Callable[[bool], Benchmark]] = {
    "join_python": by_function,
    "join_band": by_band,
    "join_latency": latency,
    "join_changes": changes,
    "join_lanes": in_lanes,
    "join_memory": memory,
    "join_spark": on_spark,
}
