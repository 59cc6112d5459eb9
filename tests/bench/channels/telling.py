"""Messages to an actor with `async def receive`, for comparison with values through a channel.

Both actors have the same worker. The sender tells as many as a channel would hold, and goes on
after the receiver has had its turn.
"""

from collections.abc import Callable
from queue import SimpleQueue

from callboard import Actor, ActorRef, ActorSystem
from channels.libraries import TIMEOUT
from savina.result import Result
from usage import Watch


class Counting(Actor[int]):
    """Count the numbers that arrive in their order."""

    def __init__(self, count: int, done: Callable[[int], object]) -> None:
        self.count = count
        self.done = done
        self.arrived = self.in_order = 0

    async def receive(self, number: int) -> None:
        self.in_order += number == self.arrived
        self.arrived += 1
        if self.arrived == self.count:
            self.done(self.in_order)


class Sending(Actor[int]):
    def __init__(self, to: ActorRef[int], count: int, chunk: int) -> None:
        self.to = to
        self.count = count
        self.chunk = chunk

    def receive(self, first: int) -> None:
        tell = self.to.tell
        following = min(first + self.chunk, self.count)
        for number in range(first, following):
            tell(number)
        if following < self.count:
            self.ref.tell(following)


def run(n: int, *, capacity: int = 16) -> Result:
    answers: SimpleQueue[int] = SimpleQueue()
    with ActorSystem(workers=1) as system:
        counting = system.spawn(Counting, n, answers.put)
        sending = system.spawn(Sending, counting, n, capacity)
        watch = Watch()
        sending.tell(0)
        in_order = answers.get(timeout=TIMEOUT)
        costs = watch.stop()
        lost = system.dead_letters.count
    return Result(n, **costs, got=[in_order, lost], want=[n, 0])
