"""Benchmarks of channels: values between tasks, and select, against other libraries and Go."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from callboard.scheduling.config import MONITORING
from competitor import Benchmark, Competitor
from players import Game

CAPACITIES = (1, 16, 1_024)
COUNTS = (10, 1_000, 10_000)  # of channels to select from
OTHERS = {  # a library's title, and its rate against callboard's, roughly
    "asyncio": ("asyncio.Queue", 1 / 5),
    "trio": ("trio", 1 / 25),
    "anyio": ("anyio", 1 / 25),
    "culsans": ("culsans", 1 / 15),
    "threads": ("threads, SimpleQueue", 1 / 15),
    "bounded_threads": ("threads, queue.Queue", 1 / 50),
}
TELL = "callboard, tell to an async def receive"
GO = 4  # its rate, likewise


def players(game: Game, part: str, **options: int) -> Iterator[Competitor]:
    """Let callboard and the libraries play, and Go its `part` with the same capacity."""
    yield game.alone("callboard", "ours", **options)
    for by, (title, rate) in OTHERS.items():
        yield game.alone(title, "peer", rate, by=by, **options)
    yield by_go(game, part, options["capacity"], GO)


def by_go(game: Game, part: str, number: int, rate: float = 1, name: str = "Go") -> Competitor:
    other = Game(part, int(game.size * rate * 2), game.smallest, game.smoke)
    return replace(other.by("go", 1, str(number)), name=name)


def ping_pong(smoke: bool) -> Benchmark:
    game = Game("channels.ping_pong", 1_000_000, 100, smoke)
    everyone = [*players(game, "ping_pong", capacity=1)]
    return Benchmark("channels_ping_pong", "Ping-pong over two channels", "values/s", everyone)


def one_to_one(smoke: bool, capacity: int) -> Benchmark:
    game = Game("channels.pipeline", 1_000_000, 100, smoke)
    tell = Game("channels.telling", 1_000_000, 100, smoke)
    everyone = [
        *players(game, "one_to_one", capacity=capacity),
        tell.alone(TELL, "floor", capacity=capacity),
    ]
    title = f"Values from one task to another, capacity {capacity:,}"
    return Benchmark(f"channels_one_to_one_{capacity}", title, "values/s", everyone)


def pipeline(smoke: bool, capacity: int) -> Benchmark:
    game = Game("channels.pipeline", 20_000, 10, smoke)
    options = {"capacity": capacity, "stages": 100}
    everyone = [
        *players(game, "pipeline_100", **options),
        game.alone("callboard, a thread for each", "ours", 1 / 25, dedicated="true", **options),
    ]
    title = f"Pipeline of 100 tasks, capacity {capacity:,}"
    return Benchmark(f"channels_pipeline_{capacity}", title, "values/s", everyone)


def fan_in(smoke: bool) -> Benchmark:
    game = Game("channels.fan_in", 1_000_000, 160, smoke)
    everyone = [*players(game, "fan_in", capacity=16)]
    title = "16 producers, one consumer, capacity 16"
    return Benchmark("channels_fan_in", title, "values/s", everyone)


def select(smoke: bool) -> Benchmark:
    """See whether a select over many channels costs more than one over few."""
    game = Game("channels.selecting", 300_000, 10, smoke)
    everyone = [
        game.alone(f"{name}{count:,} channels", "ours", way=way, channels=count)
        for name, way in (("", "selection"), ("found, ", "found"))
        for count in COUNTS
    ]
    title = "A Selection, whose task waits, or has found the value there"
    return Benchmark("channels_select", title, "rounds/s", everyone)


def select_over(smoke: bool, count: int) -> Benchmark:
    game = Game("channels.selecting", 300_000, 3, smoke)
    each = 10 / count  # the rate where a select looks at every channel
    everyone = [game.alone("callboard, Selection", "ours", way="selection", channels=count)]
    if count == COUNTS[0]:
        everyone.append(game.alone("callboard, select", "ours", 0.5, way="once", channels=count))
        everyone.append(by_go(game, "select_10", count, name="Go, select"))
    others = (
        ("asyncio.Queue, a task for each into one", 1 / 10, {"way": "merged", "by": "asyncio"}),
        ("trio, a task for each into one", 1 / 40, {"way": "merged", "by": "trio"}),
        ("asyncio.wait for a task for each", each / 10, {"way": "tasks"}),
        ("chanio", each / 50, {"way": "chanio"}),
    )
    for name, rate, options in others:
        everyone.append(game.alone(name, "peer", rate, channels=count, **options))
    everyone.append(by_go(game, "select", count, each, "Go, reflect.Select"))
    title = f"Select over {count:,} channels, of which one has a value"
    return Benchmark(f"channels_select_{count}", title, "rounds/s", everyone)


def thread_and_task(smoke: bool) -> Benchmark:
    game = Game("channels.thread_and_task", 50_000, 100, smoke)
    queues = Game("runtime.two_queues", 20_000, 100, smoke)
    everyone = [
        game.alone("callboard", "ours"),
        game.alone("asyncio, call_soon_threadsafe", "peer", 0.2, by="asyncio"),
        game.alone("culsans", "peer", 0.2, by="culsans"),
        queues.alone("two threads, two queues", "floor"),
    ]
    title = "From a thread to a task and back"
    return Benchmark("channels_thread_and_task", title, "rounds/s", everyone)


def monitoring(smoke: bool) -> Benchmark:
    games = {
        "ping-pong": (Game("channels.ping_pong", 1_000_000, 100, smoke), {"capacity": 1}),
        "one to one": (Game("channels.pipeline", 1_000_000, 100, smoke), {"capacity": 16}),
        "pipeline": (Game("channels.pipeline", 20_000, 10, smoke), {"capacity": 16, "stages": 100}),
        "replication": (Game("channels.replication", 2_000, 5, smoke), {}),
    }
    ways: dict[str, dict[str, Any]] = {
        "unmonitored": {"monitoring": MONITORING[0]},
        "monitored": {"monitoring": MONITORING[-1]},
        "logged": {"monitoring": MONITORING[-1], "logs": "true"},
    }
    everyone = [
        game.alone(f"{work}, {name}", "ours", **way, **options)
        for work, (game, options) in games.items()
        for name, way in ways.items()
    ]
    title = "What the highest level of monitoring costs, in memory and in files"
    return Benchmark("channels_monitoring", title, "values/s", everyone)


def tasks_or_threads(smoke: bool, module: str, size: int, smallest: int, title: str) -> Benchmark:
    """Play one of the thesis's pipelines (Prokesch 2011, section 6.1) as it does."""
    game = Game(f"channels.{module}", size, smallest, smoke)
    everyone = [
        game.alone("callboard", "ours"),
        game.alone("callboard, 2 workers", "ours", workers=2),
        game.alone("callboard, monitored", "ours", monitoring=MONITORING[-1]),
        game.alone("callboard, a thread for each", "ours", 1 / 10, dedicated="true"),
    ]
    return Benchmark(f"channels_{module}", title, "operations/s", everyone)


CHANNELS: dict[str, Callable[[bool], Benchmark]] = {
    "channels_ping_pong": ping_pong,
    **{f"channels_one_to_one_{c}": partial(one_to_one, capacity=c) for c in CAPACITIES},
    **{f"channels_pipeline_{c}": partial(pipeline, capacity=c) for c in CAPACITIES},
    "channels_fan_in": fan_in,
    "channels_select": select,
    **{f"channels_select_{count}": partial(select_over, count=count) for count in COUNTS},
    "channels_thread_and_task": thread_and_task,
    "channels_monitoring": monitoring,
    "channels_replication": partial(
        tasks_or_threads, module="replication", size=2_000, smallest=5,
        title="Deep replication pipeline, up to 1,000 stages",
    ),
    "channels_synchrocells": partial(
        tasks_or_threads, module="synchrocells", size=40_000, smallest=50,
        title="Synchronisation pipeline: a task for each pair",
    ),
}  # fmt: skip
