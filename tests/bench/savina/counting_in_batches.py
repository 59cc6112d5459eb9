"""Counting, where the sender hands over batches of 1,000 and the actor takes whatever waits."""

from time import perf_counter
from typing import Any

from savina.counting import Counter
from savina.result import Result


class BatchCounter(Counter):
    def receive_many(self, numbers: list[int]) -> None:
        self.total += sum(numbers)


def run(host: Any, n: int) -> Result:
    counter = host.spawn(BatchCounter)
    batch = list(range(1_000))
    batches = n // len(batch)
    begin = perf_counter()
    for _ in range(batches):
        counter.tell_many(batch)
    total = host.ask(counter, 0)
    return Result(
        batches * len(batch), perf_counter() - begin, got=total, want=batches * sum(batch)
    )
