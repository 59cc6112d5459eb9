"""Counting, where the sender hands over lots of 1,000 and the actor takes whatever waits."""

from time import perf_counter
from typing import Any

from savina.counting import Counter
from savina.result import Result


class LotCounter(Counter):
    def receive_many(self, numbers: list[int]) -> None:
        self.total += sum(numbers)


def run(host: Any, n: int) -> Result:
    counter = host.spawn(LotCounter)
    lot = list(range(1_000))
    lots = n // len(lot)
    begin = perf_counter()
    for _ in range(lots):
        counter.tell_many(lot)
    total = host.ask(counter, 0)
    return Result(lots * len(lot), perf_counter() - begin, got=total, want=lots * sum(lot))
