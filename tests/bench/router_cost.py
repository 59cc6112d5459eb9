"""What a router costs: python tests/bench/router_cost.py [ROUNDS]

Messages from the main thread to eight native actors, which add them up. The ways to send take
turns. Each shows the median of the sender's own processor time, in nanoseconds for a message, which
other programs on the machine change little; and its ratio to a tell.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import thread_time_ns
from typing import Any

from callboard import ActorSystem
from callboard.routers import BroadcastRouter, KeyRouter, LeastLoadedRouter, RoundRobinRouter
from natives import compile_actors, load

ACTORS = 8
MESSAGES = 4_000  # less than those at which an outside sender lets workers run


def each(tell: Callable[[int], object]) -> None:
    for number in range(MESSAGES):
        tell(number)


def in_turn(tells: Sequence[Callable[[int], object]]) -> None:
    for number in range(0, MESSAGES, ACTORS):
        for tell in tells:
            tell(number)


def main(rounds: int) -> None:
    compile_actors()
    counter = load().Counter
    with ActorSystem() as system:
        refs = [system.spawn(counter) for _ in range(ACTORS)]
        routers: dict[str, Any] = {
            "RoundRobinRouter": RoundRobinRouter(refs),
            "LeastLoadedRouter": LeastLoadedRouter(refs),
            "KeyRouter": KeyRouter(refs, lambda number: number),
        }
        counted = LeastLoadedRouter.spawn(system, counter, routees=ACTORS)
        tells = [ref.tell for ref in refs]
        ways: dict[str, Callable[[], None]] = {
            "tell, to one actor": lambda: each(tells[0]),
            "tell, to eight in turn": lambda: in_turn(tells),
            "RoundRobinRouter.tell_many": lambda: routers["RoundRobinRouter"].tell_many(
                range(MESSAGES)
            ),
            "ref.tell_many, to one actor": lambda: refs[0].tell_many(range(MESSAGES)),
            "LeastLoadedRouter.spawn": lambda: each(counted.tell),
        }
        for name, router in routers.items():
            ways[name] = partial(each, router.tell)
        BroadcastRouter(refs).ask(0, timeout=30).result()
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, send in ways.items():
                system.drain()
                begin = thread_time_ns()
                send()
                times[name].append((thread_time_ns() - begin) / MESSAGES)
        system.drain()
    base = median(times["tell, to eight in turn"])
    print("| way to send | ns a message | of a tell to eight in turn |")
    print("|---|---|---|")
    for name, found in times.items():
        print(f"| {name} | {median(found):.1f} | {median(found) / base:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 201)
