"""Benchmarks of calls from the main thread, in the process and to another one."""

from collections.abc import Callable, Iterator

from competitor import Benchmark
from measures import Target, ratio
from players import Game

POOL = "callboard, an actor in a process"
PIPE = "a process and a pipe"
COMPILED = "Ray, a compiled graph"
SHARED = "a process and iceoryx2"


def calls(name: str, title: str, smoke: bool, at_once: int) -> Benchmark:
    game = Game("calling.playing", 100_000, 50, smoke)
    players = [
        game.alone("callboard", "ours", by="callboard", at_once=at_once),
        game.alone(POOL, "ours", 1 / 5, by="pool", at_once=at_once),
        game.alone("Ray", "peer", 1 / 20, by="ray", at_once=at_once),
        game.alone(COMPILED, "peer", 1 / 20, by="ray_compiled", at_once=at_once),
        game.alone(SHARED, "peer", 1 / 5, by="shared_memory", at_once=at_once),
        game.alone(PIPE, "floor", 1 / 5, by="pipe", at_once=at_once),
    ]
    return Benchmark(name, title, "calls/s", players, costs=True)


def one_by_one(smoke: bool) -> Benchmark:
    return calls("calls", "Calls, one after the other", smoke, at_once=1)


def in_batches(smoke: bool) -> Benchmark:
    return calls("calls_in_batches", "Calls, 500 on their way", smoke, at_once=500)


def targets() -> Iterator[Target]:
    for name in CALLING:
        for peer in ("Ray", COMPILED, SHARED):
            yield Target(f"{name}: a pool against {peer}", 2.0, ratio(name, peer, POOL))


CALLING: dict[str, Callable[[bool], Benchmark]] = {
    "calls": one_by_one,
    "calls_in_batches": in_batches,
}
