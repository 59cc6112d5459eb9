"""Benchmarks of worker processes: rows of a known cost, values that travel, asks, and the start."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from calling_suite import PIPE, POOL
from competitor import Benchmark, Competitor, Role
from measures import Target, ahead, best_of, cost, more, ratio, value
from players import Game

LOOP, COPIES = "a loop", "two copies in memory"
NONE, ONE, TWO = "callboard", "callboard, 1 process", "callboard, 2 processes"
AUTO = "callboard, auto"
OURS = {NONE: 0, ONE: 1, TWO: 2}
POOLS = {
    "multiprocessing": "multiprocessing",
    "ProcessPoolExecutor": "futures",
    "joblib": "joblib",
    "mpire": "mpire",
}
FRAMEWORKS = {"Bytewax": "bytewax", "Ray Data": "ray_data", "Spark": "spark"}
WITHOUT_KEYS = {"Grain": "grain"}
PEERS = (*POOLS, *FRAMEWORKS, *WITHOUT_KEYS)  # all with two processes
SLOW = {"Ray Data": 1 / 2}  # of the rows: they get fewer
ROWS = {1: 1_000_000, 5: 300_000, 50: 40_000, 500: 4_000}  # by the microseconds of each
STEADY = {0.2: 3_000_000, 1: 1_500_000, 5: 400_000, 50: 50_000}  # after the first second
VALUES = {  # their titles, and how many
    "tuples": ("Tuples of two integers", 1_000_000),
    "dicts": ("Dicts of three fields", 400_000),
    "dataclasses": ("Dataclasses of three fields", 200_000),
    "texts": ("Texts of 1 KB", 200_000),
    "arrays": ("NumPy arrays of 1 MB", 400),
    "batches": ("Arrow batches of 160 KB", 2_000),
}
ASKING = {1: "stream.ask, 1 process", 2: "stream.ask, 2 processes"}
STARTS: tuple[tuple[str, Role, str], ...] = (
    ("callboard", "ours", "callboard"),
    ("multiprocessing, spawn", "peer", "multiprocessing"),
    ("interpreters that do nothing", "floor", "interpreters"),
)
WANTED = {  # of two processes against a loop, by the microseconds of a row
    "stateless": {5: 1.8, 50: 1.9},
    "keyed": {5: 1.7, 50: 1.9},
}


def players(game: Game, peers: dict[str, str], **options: Any) -> list[Competitor]:
    ours = [
        game.alone(name, "ours", by="callboard", processes=count, **options)
        for name, count in OURS.items()
    ]
    others = [
        game.alone(name, "peer", SLOW.get(name, 1), by=by, processes=2, **options)
        for name, by in peers.items()
    ]
    return [*ours, *others, game.alone(LOOP, "floor", by="loop", **options)]


def name_of(kind: str, microseconds: int) -> str:
    return f"processes_{kind}_{microseconds}us"


def auto_name(kind: str, microseconds: float) -> str:
    return f"processes_auto_{kind}_{microseconds:g}us"


def calculation(smoke: bool, kind: str, microseconds: int) -> Benchmark:
    game = Game("processes.playing", ROWS[microseconds], 64, smoke)
    options: dict[str, Any] = {"microseconds": microseconds, "keyed": str(kind == "keyed").lower()}
    title = f"Rows of {microseconds} us in Python, {kind}"
    peers = POOLS | FRAMEWORKS | ({} if kind == "keyed" else WITHOUT_KEYS)
    several = players(game, peers, **options)
    return Benchmark(name_of(kind, microseconds), title, "rows/s", several, costs=True)


def auto(smoke: bool, kind: str, microseconds: float) -> Benchmark:
    game = Game("processes.steady", STEADY[microseconds], 64, smoke)
    several = [
        game.alone(
            name,
            "ours",
            processes=processes,
            microseconds=microseconds,
            keyed=str(kind == "keyed").lower(),
            seconds=0 if smoke else 1,
        )
        for name, processes in ((NONE, 0), (TWO, 2), (AUTO, "auto"))
    ]
    title = f"Rows of {microseconds:g} us in Python, {kind}, after a second"
    return Benchmark(auto_name(kind, microseconds), title, "rows/s", several, costs=True)


def values(smoke: bool, name: str) -> Benchmark:
    title, count = VALUES[name]
    game = Game("processes.playing", count, 16, smoke)
    several = players(game, POOLS, value=name)
    if name == "arrays":
        several.append(game.alone(COPIES, "floor", by="copies", value=name))
    title = f"{title}, to a process and back"
    return Benchmark(f"processes_{name}", title, "rows/s", several, costs=True)


def asks(smoke: bool) -> Benchmark:
    game = Game("processes.asking", 200_000, 50, smoke)
    calls = Game("calling.playing", 100_000, 50, smoke)
    several = [
        *(game.alone(ASKING[count], "ours", processes=count) for count in ASKING),
        calls.alone("Ray, 500 calls on their way", "peer", 1 / 20, by="ray", at_once=500),
        calls.alone(f"{PIPE}, 500 calls on their way", "floor", by="pipe", at_once=500),
    ]
    title = "A stream that asks a pool with each row"
    return Benchmark("processes_asks", title, "asks/s", several, costs=True)


def start(smoke: bool) -> Benchmark:
    game = Game("processes.starting", 1, 1, smoke)
    several = [
        game.alone(f"{name}, {count}", role, by=by, processes=count)
        for name, role, by in STARTS
        for count in (1, 2)
    ]
    return Benchmark("processes_start", "Processes, until each has had a row", "ms", several)


def targets() -> Iterator[Target]:
    for kind, by_cost in WANTED.items():
        for microseconds, wanted in by_cost.items():
            name = name_of(kind, microseconds)
            title = f"Rows of {microseconds} us in Python, {kind}, 2 processes"
            yield Target(f"{title} against a loop", wanted, ratio(name, LOOP, TWO))
            yield Target(f"{title} against the best peer", 1.0, ahead(name, PEERS, TWO))
    for kind, steady in product(WANTED, STEADY):
        name = auto_name(kind, steady)
        title = f"Rows of {steady:g} us in Python, {kind}, auto against the better choice"
        yield Target(title, 0.95, best_of(name, (NONE, TWO), AUTO))
    yield Target(
        "Rows of 1 us in Python, 2 processes against none",
        1.0,
        ratio(name_of("stateless", 1), NONE, TWO),
    )
    yield Target(
        "Small tuples, processor time of a row, 1 process beyond none",
        0.3,
        more("processes_tuples", "cpu", NONE, ONE),
        "us",
        at_most=True,
    )
    yield Target(
        "A NumPy array of 1 MB to a process and back against two copies in memory, time",
        1.5,
        cost("processes_arrays", COPIES, ONE),
        at_most=True,
    )
    against = ratio("processes_arrays", "multiprocessing", TWO)
    yield Target("The same against multiprocessing, 2 processes", 5.0, against)
    yield Target("An ask of a pool, in turn, against a pipe", 3.0, ratio("calls", PIPE, POOL))
    on_their_way = ratio("calls_in_batches", PIPE, POOL)
    yield Target("Asks of a pool, 500 on their way, against a pipe", 2.5, on_their_way)
    for each in ASKING.values():
        yield Target(f"Trivial rows, {each}", 300_000, value("processes_asks", each), "asks/s")
    for count in (1, 2):
        started = value("processes_start", f"callboard, {count}")
        title = f"The start of {count} process{'es' * (count > 1)}, until each has had a row"
        yield Target(title, 150, started, "ms", at_most=True)


PROCESSES: dict[str, Callable[[bool], Benchmark]] = {
    **{
        name_of(kind, microseconds): partial(calculation, kind=kind, microseconds=microseconds)
        for kind, microseconds in product(WANTED, ROWS)
    },
    **{
        auto_name(kind, microseconds): partial(auto, kind=kind, microseconds=microseconds)
        for kind, microseconds in product(WANTED, STEADY)
    },
    **{f"processes_{name}": partial(values, name=name) for name in VALUES},
    "processes_asks": asks,
    "processes_start": start,
}
