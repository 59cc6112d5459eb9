"""The synchronisation pipeline of Prokesch 2011, section 6.1.2: tasks come and go all the time.

A cell joins one record of either kind, and ends. It passes on other records of a kind that it has,
to a cell which it spawns for that. When it ends, the next cell takes over its channel. Five records
of one kind come, then five of the other, and so on. An operation is a pair, and so a task.
"""

from queue import SimpleQueue
from typing import Any

from callboard import ActorSystem
from callboard.channels import Receiver, Sender, Task, channel
from channels.libraries import TIMEOUT
from savina.result import Result
from usage import Watch

ROOM = 10
DISTANCE = 5
Record = tuple[str, int]


class Feeder(Task):
    def __init__(self, sink: Sender[Any], pairs: int) -> None:
        self.sink = sink
        self.pairs = pairs

    async def run(self) -> None:
        for first in range(0, self.pairs, DISTANCE):
            for kind in "AB":
                for number in range(first, first + DISTANCE):
                    await self.sink.send((kind, number))


class Cell(Task):
    def __init__(self, source: Receiver[Any], out: Sender[int], dedicated: bool) -> None:
        self.source = source
        self.out = out
        self.dedicated = dedicated

    async def run(self) -> None:
        kept: Record | None = None
        onward: Sender[Any] | None = None
        async for record in self.source:
            if isinstance(record, Receiver):  # the last: the cell before this one has ended
                self.source.replace(record)
            elif kept is None:
                kept = record
            elif kept[0] == record[0]:
                if onward is None:
                    onward, following = channel(ROOM)
                    self.spawn_cell(following, self.out.clone())
                await onward.send(record)
            else:
                await self.out.send(kept[1] - record[1])
                rest = self.source.release()
                if onward is None:
                    self.spawn_cell(rest, self.out.release())
                else:
                    await onward.send(rest)
                return

    def spawn_cell(self, source: Receiver[Any], out: Sender[int]) -> None:
        # By the system, since an actor's children end with it.
        self.system.spawn(Cell, source, out, self.dedicated, dedicated=self.dedicated)


class Collector(Task):
    """Count the pairs that belong together."""

    def __init__(self, receiver: Receiver[int], done: Any) -> None:
        self.receiver = receiver
        self.done = done

    async def run(self) -> None:
        right = 0
        async for difference in self.receiver:
            right += difference == 0
        self.done(right)


def run(n: int, *, dedicated: bool = False, **options: Any) -> Result:
    pairs = n - n % DISTANCE
    answers: SimpleQueue[Any] = SimpleQueue()
    with ActorSystem(**{"workers": 1, **options}) as system:
        watch = Watch()
        first, source = channel(ROOM)
        out, results = channel(ROOM)
        system.spawn(Cell, source, out, dedicated, dedicated=dedicated)
        system.spawn(Collector, results, answers.put, dedicated=dedicated)
        system.spawn(Feeder, first, pairs, dedicated=dedicated)
        answer = answers.get(timeout=TIMEOUT)
        costs = watch.stop()
        lost = system.dead_letters.count
    return Result(pairs, **costs, got=[answer, lost], want=[pairs, 0])
