"""What `run.what_if()` predicts, and what comes true: python tests/bench/what_if_error.py [PART]

Graphs of three operators whose costs are known. For each operator the gain is predicted; then the
operator is made faster by the same part, and the gain is measured: by processor time where
operators compute, on threads that sleep where they wait.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from callboard import ActorSystem
from callboard.streams import Run, entry

ROWS = 16  # of a batch
SECONDS = 4.0  # for a prediction
PAIRS = 5  # of measurements


def computing(loops: float) -> Callable[[int], int]:
    """Return a function that takes a time in proportion to `loops`, with the interpreter."""
    count = round(loops)

    def compute(row: int) -> int:
        for _ in range(count):
            pass
        return row

    return compute


def sleeping(microseconds: float) -> Callable[[int], int]:
    """Return a function that takes a time without the interpreter."""
    seconds = microseconds / 1e6

    def sleep(row: int) -> int:
        time.sleep(seconds)
        return row

    return sleep


Make = Callable[[float], Callable[[int], int]]

# Operators' costs, the function that has such a cost, and options of the run.
CASES: dict[str, tuple[Sequence[float], Make, dict[str, Any]]] = {
    "Python, dynamic": ((500, 1500, 1000), computing, {}),
    "Python, dedicated threads": ((500, 1500, 1000), computing, {"threading": "dedicated"}),
    "sleeping, dedicated threads": ((300, 900, 600), sleeping, {"threading": "dedicated"}),
}


class Driven:
    """A run that gets rows as fast as it takes them, from a thread."""

    def __init__(self, costs: Sequence[float], make: Make, options: dict[str, Any]) -> None:
        graph = entry("x")
        for number, cost in enumerate(costs):
            graph = graph.map(make(cost), name=f"op{number}")
        self.system = ActorSystem(workers=2)
        self.run: Run[Any] = self.system.run(
            graph.filter(lambda row: False, name="none").collect(),
            batch_size=ROWS,
            window=16,
            **options,
        )
        self.stop = threading.Event()
        self.sender = threading.Thread(target=self.send)
        self.sender.start()

    def send(self) -> None:
        rows = list(range(ROWS))
        while not self.stop.is_set():
            self.run.send("x", rows)

    def rate(self, seconds: float = 0.7) -> float:
        """Return the rounds a second of a while."""
        flow = self.run._work.flow
        time.sleep(seconds / 4)
        rounds, begun = flow.done, time.perf_counter()
        time.sleep(seconds)
        return (flow.done - rounds) / (time.perf_counter() - begun)

    def __enter__(self) -> "Driven":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.sender.join()
        self.run.cancel()
        self.system.stop()


def real_gain(costs: Sequence[float], make: Make, options: Any, number: int, part: float) -> float:
    """Return the gain of an operator that is faster indeed."""
    faster = [cost * (1 - part) if at == number else cost for at, cost in enumerate(costs)]
    gains = []
    for _ in range(PAIRS):
        with Driven(costs, make, options) as plain:
            before = plain.rate()
        with Driven(faster, make, options) as quicker:
            gains.append(quicker.rate() / before - 1)
    return statistics.median(gains)


def main(part: float) -> None:
    """Print a line for each operator of each graph."""
    print(f"each operator {part:.0%} faster     predicted            real      error")
    for title, (costs, make, options) in CASES.items():
        for number in range(len(costs)):
            with Driven(costs, make, options) as driven:
                answer = driven.run.what_if(f"op{number}", part, seconds=SECONDS)
            real = real_gain(costs, make, options, number, part)
            print(
                f"{title:<28} op{number}  {answer.gain:+7.1%} ± {answer.uncertainty:5.1%}"
                f"  {real:+7.1%}  {answer.gain - real:+7.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.3)
