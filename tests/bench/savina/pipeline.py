"""Pipeline: items go through 100 actors that each add 1; not in Savina, but what streams do."""

from collections.abc import Callable

from hosts.base import Behaviour, Host, Ref
from savina.result import Result
from usage import Watch

START = -1


class Stage(Behaviour):
    def __init__(self, next_stage: Ref) -> None:
        self.next = next_stage

    def receive(self, item: int) -> None:
        self.next.tell(item + 1)


class Ends(Behaviour):
    """Close the line: send an item for each that arrives, and count those in their right place."""

    def __init__(
        self, items: int, line: list[Ref], done: Callable[[int], object], stages: int, window: int
    ) -> None:
        self.items = items
        self.line = line
        self.done = done
        self.stages = stages
        self.window = window
        self.sent = self.arrived = self.in_order = 0

    def receive(self, item: int) -> None:
        if item == START:
            for _ in range(self.window):
                self.order()
            return
        self.in_order += item == self.arrived + self.stages
        self.arrived += 1
        if self.arrived == self.items:
            self.done(self.in_order)
        self.order()

    def order(self) -> None:
        if self.sent < self.items:
            self.line[-1].tell(self.sent)
            self.sent += 1


def run(host: Host, n: int, stages: int = 100, window: int = 256) -> Result:
    """Play with `window` items on their way at any time."""
    line: list[Ref] = []
    ends = host.spawn(Ends, n, line, host.done, stages, window)
    line.append(ends)
    for _ in range(stages):
        line.append(host.spawn(Stage, line[-1]))
    watch = Watch()
    host.feed(ends, [START])
    [in_order] = host.wait()
    return Result(n * stages, **watch.stop(), got=in_order, want=n)
