"""Benchmarks of nets: one coordinator for all entities, or a task or a thread for each."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from callboard.scheduling.config import MONITORING
from competitor import Benchmark, Competitor
from players import Game

SIZES = {  # of a program: callboard's, that of tasks, which take far longer, and the smallest
    "fibonacci": (20, 18, 6),
    "power": (16, 12, 4),
    "sieve_cells": (10_000, 200, 30),
    "sieve_feedback": (10_000, 200, 30),
}
TITLES = {
    "fibonacci": "Fibonacci numbers by filters and cells",
    "power": "Powers of two by filters and cells",
    "sieve_cells": "Primes, a stage for each with a chain of cells",
    "sieve_feedback": "Primes, all cells in one loop",
}
TASKS, THREADS = "a task for each entity", "a thread for each entity"
BARE_CALLS = "two calls, and the dict between"
LANGGRAPH = "LangGraph"
POLICIES: dict[str, dict[str, Any]] = {
    "FIFO, round robin": {"placement": "round_robin"},
    "FIFO, balanced": {"placement": "balanced"},
    "two-level, balanced": {"placement": "balanced", "priority": "two_level"},
}
AT_A_TIME = {1: "1 call", 2: "2 calls"}
STEPS = {"5 µs": (100, 200_000), "50 µs": (1_000, 20_000)}  # of a call; and the records
TWO_PROCESSES, PLAIN_LOOP = "callboard, 2 processes", "a plain loop"
SHALLOW, DEEP = "callboard, boxes, up to 1,000 stages", "callboard, boxes"


def program(smoke: bool, name: str) -> Benchmark:
    size, of_tasks, smallest = SIZES[name]

    def game(size: int) -> Game:
        return Game("nets.coordination", size, smallest, smoke)

    everyone = [
        game(size).alone("callboard", "ours", program=name),
        game(of_tasks).alone(TASKS, "peer", program=name, by="tasks"),
    ]
    return Benchmark(f"nets_{name}", TITLES[name], "operations/s", everyone, costs=True)


def hops(smoke: bool) -> Benchmark:
    game = Game("nets.hops", 5_000_000, 1_000, smoke)
    everyone = [
        competitor
        for net in ("star", "split")
        for competitor in (
            game.alone(f"callboard, {net}", "ours", net=net),
            game.alone(f"{TASKS}, {net}", "peer", 1 / 50, net=net, by="tasks"),
        )
    ]
    title = "Hops of records between filters in a star, and in a split in a loop"
    return Benchmark("nets_hops", title, "hops/s", everyone, costs=True)


def replication(smoke: bool) -> Benchmark:
    """Play the deep pipeline; tasks and threads have fewer records, and so fewer stages."""
    game = Game("nets.replication", 1_000, 5, smoke)
    most = 50 if smoke else 10_000
    few = 20 if smoke else 2_500
    everyone = [
        game.alone("callboard, filters", "ours", stage="filter", depth=most),
        game.alone(SHALLOW, "ours", 10, stage="box", depth=most // 10),
        game.alone(DEEP, "ours", stage="box", depth=most),
        game.alone(TASKS, "peer", 1 / 50, stage="box", depth=most, by="tasks"),
        game.alone(THREADS, "peer", 1 / 100, stage="box", depth=few, by="threads"),
    ]
    title = "Deep replication pipeline, up to 10,000 stages; 2,500 with threads"
    return Benchmark("nets_replication", title, "operations/s", everyone, costs=True)


def unfolding(smoke: bool) -> Benchmark:
    game = Game("nets.unfolding", 1_000_000, 100, smoke)
    everyone = [game.alone("callboard", "ours")]
    return Benchmark("nets_unfolding", "Memory of a million boxes of a star", "bytes", everyone)


def synchrocells(smoke: bool) -> Benchmark:
    game = Game("nets.synchrocells", 200_000, 50, smoke)
    by_hand = Game("channels.synchrocells", 20_000, 50, smoke)
    everyone = [
        game.alone("callboard", "ours"),
        by_hand.alone("tasks by hand, which take over channels", "peer"),
        game.alone(TASKS, "peer", 1 / 20, by="tasks"),
    ]
    title = "Synchronisation pipeline: a cell for each pair"
    return Benchmark("nets_synchrocells", title, "operations/s", everyone, costs=True)


def two_boxes(smoke: bool) -> Benchmark:
    game = Game("nets.two_boxes", 500_000, 100, smoke)
    everyone = [game.alone("callboard", "ours"), game.alone(BARE_CALLS, "floor", 2, by="calls")]
    title = "A record through two trivial boxes"
    return Benchmark("nets_two_boxes", title, "records/s", everyone, costs=True)


def monitoring(smoke: bool) -> Benchmark:
    game = Game("nets.replication", 200, 5, smoke)
    ways: dict[str, dict[str, Any]] = {
        "unmonitored": {"monitoring": MONITORING[0]},
        "monitored": {"monitoring": MONITORING[-1]},
        "logged": {"monitoring": MONITORING[-1], "logs": "true"},
    }
    everyone = [
        game.alone(name, "ours", stage="box", depth=100 if smoke else 10_000, **way)
        for name, way in ways.items()
    ]
    title = "What the highest level of monitoring costs the deep pipeline"
    return Benchmark("nets_monitoring", title, "operations/s", everyone, costs=True)


def fast_branch(smoke: bool) -> Benchmark:
    """Let 0.1 s of work stand beside 1.2 s, as in a report of LangGraph's users."""
    game = Game("nets.branches", 1, 1, smoke)
    options: dict[str, Any] = {"what": "fast", "scale": 0.01 if smoke else 1.0}
    title = "A branch of 0.1 s beside one of 1.2 s: when what follows the fast one begins"
    return Benchmark("nets_fast_branch", title, "ms", [*frameworks(game, **options)])


def fan_in(smoke: bool) -> Benchmark:
    game = Game("nets.branches", 20_000, 20, smoke)
    everyone = [*frameworks(game, 1 / 20, what="fan_in")]
    title = "Records to two branches, and joined"
    return Benchmark("nets_fan_in", title, "records/s", everyone, costs=True)


def loop(smoke: bool) -> Benchmark:
    game = Game("nets.branches", 1_000, 20, smoke)
    everyone = [
        *frameworks(game, what="loop"),
        game.alone("callboard, a box that is no coroutine", "ours", 100, what="loop", by="plain"),
    ]
    return Benchmark("nets_loop", "A loop of 1,000 steps", "steps/s", everyone, costs=True)


def frameworks(
    game: Game, of_langgraph: float = 1, of_asyncio: float = 1, **options: Any
) -> Iterator[Competitor]:
    """Let callboard, LangGraph and plain asyncio play."""
    yield game.alone("callboard", "ours", **options)
    yield game.alone(LANGGRAPH, "peer", of_langgraph, by="langgraph", **options)
    yield game.alone("plain asyncio", "floor", of_asyncio, by="asyncio", **options)


def mandelbrot(smoke: bool) -> Benchmark:
    """Play the thesis's policies, which do not reach these boxes: they have their own threads."""
    game = Game("nets.mandelbrot", 1_000, 32, smoke)
    everyone = [
        *(game.alone(name, "ours", **options) for name, options in POLICIES.items()),
        game.alone("a thread for each box", "ours", dedicated="true"),
    ]
    return Benchmark("nets_mandelbrot", "Mandelbrot image in NumPy", "strips/s", everyone)


def releasing(smoke: bool) -> Benchmark:
    game = Game("nets.releasing", 2_000, 4, smoke)
    everyone = [
        game.alone(f"{way}, {calls}", "ours", workers=workers, dedicated=dedicated)
        for way, dedicated in (("threads", "false"), ("dedicated", "true"))
        for workers, calls in AT_A_TIME.items()
    ]
    title = "A box that releases the interpreter's lock, one call at a time and two"
    return Benchmark("nets_releasing", title, "operations/s", everyone, costs=True)


def in_processes(smoke: bool, time: str) -> Benchmark:
    steps, size = STEPS[time]
    game = Game("nets.in_processes", size, 20, smoke)
    everyone = [
        game.alone(TWO_PROCESSES, "ours", steps=steps, processes=2),
        game.alone("callboard, no process", "ours", steps=steps),
        game.alone(PLAIN_LOOP, "floor", steps=steps, by="loop"),
    ]
    name = f"nets_in_processes_{time.removesuffix(' µs')}"
    return Benchmark(name, f"A box of plain Python of {time}", "records/s", everyone, costs=True)


NETS: dict[str, Callable[[bool], Benchmark]] = {
    **{f"nets_{name}": partial(program, name=name) for name in SIZES},
    "nets_hops": hops,
    "nets_replication": replication,
    "nets_unfolding": unfolding,
    "nets_synchrocells": synchrocells,
    "nets_two_boxes": two_boxes,
    "nets_monitoring": monitoring,
    "nets_fast_branch": fast_branch,
    "nets_fan_in": fan_in,
    "nets_loop": loop,
    "nets_mandelbrot": mandelbrot,
    "nets_releasing": releasing,
    "nets_in_processes_5": partial(in_processes, time="5 µs"),
    "nets_in_processes_50": partial(in_processes, time="50 µs"),
}
