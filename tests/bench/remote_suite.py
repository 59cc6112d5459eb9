"""Benchmarks of served systems: rows and asks from another process, compared with bare sockets."""

from collections.abc import Callable
from functools import partial

from competitor import Benchmark
from players import Game


def batches(smoke: bool, rows: int) -> Benchmark:
    # For half a second: OpenBLAS, which pyarrow brings by way of NumPy, spins for 50 ms at first.
    game = Game("remote.feeding", 100_000_000, rows, smoke)
    players = [
        game.alone("callboard", "ours", by="arrow", batch=rows),
        game.alone("bare socket", "floor", by="socket", batch=rows),
    ]
    title = f"Record batches of {rows:,} rows to another process, over a Unix socket"
    name = "remote_arrow" if rows <= 10_000 else "remote_arrow_large"
    return Benchmark(name, title, "rows/s", players)


def rows(smoke: bool) -> Benchmark:
    game = Game("remote.feeding", 500_000, 2_000, smoke)
    players = [
        game.alone("callboard, msgpack", "ours", by="msgpack"),
        game.alone("HTTP POST of JSON", "peer", 0.3, by="post"),
    ]
    return Benchmark("remote_rows", "Rows to another process", "rows/s", players)


def cores(smoke: bool) -> Benchmark:
    game = Game("remote.feeding", 500_000, 2_000, smoke)
    players = [
        game.alone("callboard, msgpack", "ours", by="msgpack", per_core="true"),
        game.alone("HTTP POST of JSON", "peer", 0.3, by="post", per_core="true"),
    ]
    title = "Rows to another process, for a second of processor time of both"
    return Benchmark("remote_cores", title, "rows/s", players)


def asks(smoke: bool) -> Benchmark:
    game = Game("remote.asking", 5_000, 100, smoke)
    players = [
        game.alone("callboard", "ours", by="callboard"),
        game.alone("bare socket", "floor", by="echo"),
    ]
    return Benchmark("remote_ask", "One ask at a time of another process, median", "us", players)


def beside_large(smoke: bool) -> Benchmark:
    game = Game("remote.beside_large", 5, 1, smoke)
    players = [
        game.alone("nothing", "floor", by="nothing"),
        *(
            game.alone(f"frames of {kind}", "ours", by=kind)
            for kind in ("dicts", "sets", "tuples", "decimals", "ints")
        ),
    ]
    title = "The longest wait of an ask, beside another client's largest frames"
    return Benchmark("remote_beside_large", title, "ms", players)


def staged(smoke: bool) -> Benchmark:
    game = Game("remote.committing", 200_000, 2_000, smoke)
    players = [
        game.alone("staged, until a commit is on disk", "ours", by="commit"),
        game.alone("staged, until the actor has them", "ours", by="apply"),
        game.alone("told", "floor", by="tell"),
    ]
    title = "Rows that count once, in batches of 200,000, against rows that are told"
    return Benchmark("remote_staged", title, "rows/s", players)


def sharded(smoke: bool) -> Benchmark:
    game = Game("remote.sharding", 1_000_000, 2_000, smoke)
    players = [
        game.alone(
            f"{executors} executor{'s' * (executors > 1)}, {servers} server{'s' * (servers > 1)}",
            "ours",
            executors=executors,
            servers=servers,
        )
        for executors, servers in (((2, 2),) if smoke else ((1, 1), (1, 2), (2, 1), (2, 2), (4, 2)))
    ]
    title = "Rows that Spark's executors deliver to shards, each counted once"
    return Benchmark("remote_sharded", title, "rows/s", players)


REMOTE: dict[str, Callable[[bool], Benchmark]] = {
    "remote_arrow": partial(batches, rows=10_000),
    "remote_arrow_large": partial(batches, rows=100_000),
    "remote_rows": rows,
    "remote_cores": cores,
    "remote_ask": asks,
    "remote_beside_large": beside_large,
    "remote_staged": staged,
    "remote_sharded": sharded,
}
