"""Counting: the main program sends n numbers to an actor that adds them, then asks for the sum."""

from time import perf_counter

from hosts.base import Behaviour, Host
from savina.result import Result


class Counter(Behaviour):
    def __init__(self) -> None:
        self.total = 0

    def receive(self, number: int) -> int:
        self.total += number
        return self.total


def run(host: Host, n: int) -> Result:
    counter = host.spawn(Counter)
    begin = perf_counter()
    host.feed(counter, range(n))
    total = host.ask(counter, 0)
    return Result(n, perf_counter() - begin, got=total, want=n * (n - 1) // 2)
