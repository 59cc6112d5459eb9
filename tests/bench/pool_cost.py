"""What a call in another process costs: python tests/bench/pool_cost.py [ROUNDS]

`system.pool()` beside `concurrent.futures.ProcessPoolExecutor` with spawn, both of two processes.
They take turns, and each shows the median of its rounds, in microseconds for a call.
"""

import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from time import perf_counter
from typing import Any

from callboard import Actor, ActorSystem

PROCESSES = 2
CALLS = 500  # one after the other
TOGETHER = 5_000
BATCH = 1_000


def triple(number: int) -> int:
    return number * 3


class Triple(Actor[Any]):
    def receive(self, message: Any) -> Any:
        if isinstance(message, list):
            return [number * 3 for number in message]
        return message * 3


def expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found} was found, not {wanted}")


def main(rounds: int) -> None:
    context = multiprocessing.get_context("spawn")
    ways: dict[str, tuple[int, Callable[[], Any], Callable[[], Any]]]
    with ActorSystem() as system, ProcessPoolExecutor(PROCESSES, context) as executor:
        pool = system.pool(Triple, processes=PROCESSES)
        numbers = range(TOGETHER)
        many = range(BATCH * 50)

        def ask_together() -> list[int]:
            return [answer.result() for answer in [pool.ask(number) for number in numbers]]

        def submit_together() -> list[int]:
            futures = [executor.submit(triple, number) for number in numbers]
            return [future.result() for future in futures]

        def ask_batches() -> list[int]:
            batches = [list(many[at : at + BATCH]) for at in range(0, len(many), BATCH)]
            answers = [pool.ask(batch) for batch in batches]
            return [number for answer in answers for number in answer.result()]

        ways = {
            "one after the other": (
                CALLS,
                lambda: [pool.ask(number).result() for number in range(CALLS)],
                lambda: [executor.submit(triple, number).result() for number in range(CALLS)],
            ),
            f"{TOGETHER:,} at once": (TOGETHER, ask_together, submit_together),
            f"in batches of {BATCH:,}": (
                len(many),
                ask_batches,
                lambda: [*executor.map(triple, many, chunksize=BATCH)],
            ),
        }
        times: dict[tuple[str, str], list[float]] = {}
        for turn in range(rounds + 1):
            for name, (calls, by_us, by_them) in ways.items():
                for who, run in (("ours", by_us), ("theirs", by_them)):
                    begin = perf_counter()
                    found = run()
                    spent = (perf_counter() - begin) / calls * 1e6
                    expect(found, [number * 3 for number in range(calls)])
                    if turn:  # the first starts the processes
                        times.setdefault((name, who), []).append(spent)
    print("| us a call | system.pool | ProcessPoolExecutor | ratio |")
    print("|---|---|---|---|")
    for name in ways:
        ours, theirs = (median(times[name, who]) for who in ("ours", "theirs"))
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
