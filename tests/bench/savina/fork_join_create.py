"""Fork-join, creation: n actors are spawned, get one message each, and stop."""

from collections.abc import Callable

from hosts.base import Behaviour, Host
from savina.result import Result
from usage import Watch


class Child(Behaviour):
    """Take one message and stop."""

    def __init__(self, done: Callable[[int], object]) -> None:
        self.done = done

    def receive(self, number: int) -> None:
        self.done(number)
        self.stop()


def run(host: Host, n: int) -> Result:
    watch = Watch()
    host.spawn_each(Child, range(n), host.done)
    numbers = host.wait(n)
    return Result(n, **watch.stop(), got=sum(numbers), want=sum(range(n)))
