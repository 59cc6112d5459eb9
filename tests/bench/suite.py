"""The benchmarks of actors, each with its competitors."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from competitor import Benchmark
from players import LANGUAGES, Game, built_actors, with_workers


def ring(module: str, title: str, smallest: int, smoke: bool) -> Benchmark:
    game = Game(f"savina.{module}", 4_000_000, smallest, smoke)
    players = game.all(game.on("threads"), *game.languages())
    return Benchmark(module, title, "messages/s", players)


def counting(smoke: bool) -> Benchmark:
    game = Game("savina.counting", 4_000_000, 1_000, smoke)
    batches = Game("savina.counting_in_batches", 8_000_000, 1_000, smoke)
    players = game.all(
        batches.on("callboard", "callboard, in batches"), game.on("threads"), *game.languages()
    )
    return Benchmark("counting", "Counting", "messages/s", players)


def throughput(smoke: bool) -> Benchmark:
    game = Game("savina.fork_join_throughput", 4_000_000, 600, smoke)
    title = "Fork-join, throughput: 60 actors"
    return Benchmark("fork_join_throughput", title, "messages/s", game.all(*game.languages()))


def creation(smoke: bool) -> Benchmark:
    game = Game("savina.fork_join_create", 400_000, 50, smoke)
    title = "Fork-join, creation: spawn, one message, stop"
    others = (game.by(program) for program in (*LANGUAGES, "floor"))
    return Benchmark("fork_join_create", title, "actors/s", game.all(*others))


def big(smoke: bool) -> Benchmark:
    game = Game("savina.big", 12_000, 2, smoke)
    players = game.all(game.natively(), *(game.by(program) for program in LANGUAGES))
    return Benchmark("big", "Big: 120 actors ping at random", "messages/s", players)


def python_only(module: str, title: str, size: int, smallest: int, smoke: bool) -> Benchmark:
    game = Game(f"savina.{module}", size, smallest, smoke)
    return Benchmark(module, title, "messages/s", game.all())


def native_pipeline(smoke: bool) -> Benchmark:
    game = Game("savina.native_pipeline", 100_000, 10, smoke)
    # The first items pass half the stages before the second worker has any: the longer, the less of
    # that is in the rate.
    long = Game("savina.native_pipeline", 400_000, 10, smoke)
    halves = json.dumps({"policy": "blocks", "size": 501})  # the ends and half the stages, the rest
    players = [long.natively(workers, placement=halves) for workers in (1, 2)]
    players += [
        (long if program == "floor" else game).by(program, workers)
        for program in (*LANGUAGES, "tbb", "floor")
        for workers in (1, 2)
    ]
    players += [game.by("tbb", workers, "stateless") for workers in (1, 2)]
    return Benchmark("native_pipeline", "Native pipeline of 1,000 stages", "stages/s", players)


def ask(smoke: bool) -> Benchmark:
    game = Game("runtime.ask", 100_000, 100, smoke)
    queues = Game("runtime.two_queues", 20_000, 100, smoke)
    players = [game.on(host) for host in ("callboard", "asyncio", "thespian", "pykka", "xoscar")]
    players.append(queues.alone("two threads, two queues", "floor"))
    return Benchmark("ask", "Ask from the main thread", "asks/s", players)


def room(smoke: bool) -> Benchmark:
    game = Game("runtime.room", 10_000, 100, smoke)
    players = [
        game.alone("from an actor of its worker", "ours", sender="actor"),
        game.alone("from the main thread", "ours", sender="thread"),
    ]
    title = "Into a full mailbox, whose owner asks elsewhere"
    return Benchmark("room", title, "messages/s", players)


def room_asks(smoke: bool) -> Benchmark:
    game = Game("runtime.room", 5_000, 100, smoke)
    title = "Asks to a worker on which an actor waits for room"
    players = [game.alone("median", "ours", measure="asks")]
    return Benchmark("room_asks", title, "us", players)


def concurrent(smoke: bool) -> Benchmark:
    game = Game("runtime.concurrent", 20_000, 100, smoke)
    slow = Game("runtime.concurrent", 400, 10, smoke)
    players = [
        game.alone("concurrency=100", "ours", way="actor"),
        game.alone("asyncio tasks", "peer", way="tasks"),
        slow.alone("one at a time", "ours", way="in turns"),
    ]
    title = "Messages that sleep for 1 ms, 100 at a time, on an event loop"
    return Benchmark("concurrent", title, "messages/s", players)


def token(smoke: bool) -> Benchmark:
    """See what more workers cost, of which one at a time has the interpreter.

    Actors live on all workers: under dynamic threading those of Python would have the first alone.
    """
    ring = Game("savina.thread_ring", 400_000, 1_000, smoke)
    banking = Game("savina.banking", 40_000, 1_000, smoke)
    mixed = Game("runtime.mixed", 400_000, 1_000, smoke)
    players = []
    pairs = {"placement": json.dumps({"policy": "blocks", "size": 4})}  # one of either kind
    for name, game, placed in (
        ("ring", ring, {}), ("banking", banking, {}), ("mixed with native", mixed, pairs)
    ):  # fmt: skip
        players.append(game.on("callboard", name))
        for workers in (2, 4):
            options = {"workers": workers, "threading": "assigned", **placed}
            players.append(game.on("callboard", with_workers(name, workers), **options))
    absent = built_actors()
    players = [replace(p, absent=absent) if p.name.startswith("mixed") else p for p in players]
    return Benchmark("token", "The interpreter token", "messages/s", players)


def mandelbrot(smoke: bool) -> Benchmark:
    """Play table 6.1 of Prokesch 2011, and beside it one worker, and our default."""
    game = Game("runtime.mandelbrot", 800, 32, smoke)
    balanced = {"workers": 2, "placement": "balanced"}
    ways: dict[str, dict[str, Any]] = {
        "1 worker": {"workers": 1},
        "turns": {"workers": 2, "placement": "round_robin"},
        "balanced": balanced,
        "balanced, two levels": {**balanced, "priority": "two_level"},
        "no placement": {"workers": 2},
    }
    absent = built_actors("mandelbrot")
    players = [
        replace(game.alone(title, "ours", **options), kind="native", absent=absent)
        for title, options in ways.items()
    ]
    return Benchmark("mandelbrot", "The Mandelbrot network", "strips/s", players)


def monitoring(smoke: bool) -> Benchmark:
    game = Game("savina.ping_pong", 4_000_000, 100, smoke)
    levels = ("off", "times", "mailboxes", "workers")
    players = [game.on("callboard", f"level {level}", monitoring=level) for level in levels]
    return Benchmark("monitoring", "Ping-pong, monitored", "messages/s", players)


def memory(smoke: bool) -> Benchmark:
    game = Game("runtime.memory", 1_000_000, 100_000, smoke)
    title = "A million idle actors, each with its ref and its own dict"
    return Benchmark("memory", title, "bytes/actor", [game.on("callboard")])


def idle(smoke: bool) -> Benchmark:
    game = Game("runtime.idle", 1_000, 10, smoke)
    # With a GIL Python actors have one of the workers' threads; native actors have all.
    players = [game.on("callboard", workers=4), game.natively(4)]
    return Benchmark("idle", "An idle system of 4 workers", "% of a core", players)


BENCHMARKS: dict[str, Callable[[bool], Benchmark]] = {
    "ping_pong": partial(ring, "ping_pong", "Ping-pong", 100),
    "thread_ring": partial(ring, "thread_ring", "Thread ring of 100", 1_000),
    "counting": counting,
    "fork_join_throughput": throughput,
    "fork_join_create": creation,
    "chameneos": partial(python_only, "chameneos", "Chameneos", 800_000, 100),
    "big": big,
    "bounded_buffer": partial(python_only, "bounded_buffer", "Bounded buffer", 800_000, 400),
    "dictionary": partial(python_only, "dictionary", "Concurrent dictionary", 1_600_000, 400),
    "banking": partial(python_only, "banking", "Banking", 400_000, 1_000),
    "pipeline": partial(python_only, "pipeline", "Pipeline of 100 Python stages", 40_000, 10),
    "native_pipeline": native_pipeline,
    "ask": ask,
    "room": room,
    "room_asks": room_asks,
    "concurrent": concurrent,
    "token": token,
    "mandelbrot": mandelbrot,
    "monitoring": monitoring,
    "memory": memory,
    "idle": idle,
}
