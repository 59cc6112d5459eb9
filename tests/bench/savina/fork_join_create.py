"""Fork-join, creation: n actors are spawned, get one message each, and stop."""

from collections.abc import Callable
from time import perf_counter

from hosts.base import Behaviour, Host
from savina.result import Result


class Child(Behaviour):
    """Take one message and stop."""

    def __init__(self, done: Callable[[int], object]) -> None:
        self.done = done

    def receive(self, number: int) -> None:
        self.done(number)
        self.stop()


def run(host: Host, n: int) -> Result:
    begin = perf_counter()
    host.spawn_each(Child, range(n), host.done)
    numbers = host.wait(n)
    return Result(n, perf_counter() - begin, got=sum(numbers), want=sum(range(n)))
