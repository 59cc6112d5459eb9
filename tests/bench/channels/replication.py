"""The deep replication pipeline of Prokesch 2011, section 6.1.1: many tasks, and a poll of all.

A record is a number. Each stage passes it on, less one, while it is greater than zero; then it goes
to the collector, over the stage's own channel. Each channel has room for ten records. Measured is
all of it, with the spawning. An operation is a record at a stage.
"""

import random
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from callboard import ActorSystem
from callboard.channels import ChannelClosed, Receiver, Selection, Sender, Task, channel
from callboard.observing import record_trace
from channels.libraries import TIMEOUT
from savina.result import Result
from usage import Watch

ROOM = 10


class Feeder(Task):
    def __init__(self, sink: Sender[int], numbers: list[int]) -> None:
        self.sink = sink
        self.numbers = numbers

    async def run(self) -> None:
        for number in self.numbers:
            await self.sink.send(number)


class Replica(Task):
    def __init__(
        self, place: int, source: Receiver[int], onward: Sender[int], out: Sender[int]
    ) -> None:
        self.place = place
        self.source = source
        self.onward = onward
        self.out = out

    async def run(self) -> None:
        with self.onward, self.out:  # a task's end closes only those ends that it has used
            async for number in self.source:
                if number > 0:
                    await self.onward.send(number - 1)
                else:
                    await self.out.send(self.place)


class Collector(Task):
    """Add up the places at which records leave; end when all stages have."""

    def __init__(self, outs: list[Receiver[int]], done: Any) -> None:
        self.outs = outs
        self.done = done

    async def run(self) -> None:
        selection = Selection(self.outs)
        arrived = total = 0
        async for out in selection:
            try:
                total += out.receive_nowait()
                arrived += 1
            except ChannelClosed:
                selection.remove(out)
        self.done([arrived, total])


def run(
    n: int, *, depth: int = 1_000, dedicated: bool = False, logs: bool = False, **options: Any
) -> Result:
    chosen = random.Random(1)
    numbers = [chosen.randint(0, depth) for _ in range(n)]
    answers: SimpleQueue[Any] = SimpleQueue()
    with TemporaryDirectory() as folder, ActorSystem(**{"workers": 1, **options}) as system:
        if logs:
            record_trace(system, Path(folder, "run.perfetto-trace"))
        watch = Watch()
        first, source = channel(ROOM)
        outs = []
        for place in range(depth + 1):
            onward, following = channel(ROOM)
            out, left = channel(ROOM)
            system.spawn(Replica, place, source, onward, out, dedicated=dedicated)
            outs.append(left)
            source = following
        system.spawn(Collector, outs, answers.put, dedicated=dedicated)
        system.spawn(Feeder, first, numbers, dedicated=dedicated)
        answer = answers.get(timeout=TIMEOUT)
        costs = watch.stop()
        lost = system.dead_letters.count
    want = [n, sum(numbers)]
    return Result(sum(numbers) + n, **costs, got=[answer, lost], want=[want, 0])
