"""Thread ring: a message goes n hops round a ring of 100 actors, falling by one at each."""

from collections.abc import Callable
from time import perf_counter

from hosts.base import Behaviour, Host, Ref
from savina.result import Result

JOIN = -1


class Player(Behaviour):
    """Pass the number on, less one; whoever gets the 0 says so."""

    def __init__(self, place: int, ring: list[Ref], done: Callable[[int], object]) -> None:
        self.place = place
        self.ring = ring
        self.done = done
        self.next: Ref  # known when the ring is complete

    def receive(self, left: int) -> None:
        if left > 0:
            self.next.tell(left - 1)
        elif left == JOIN:  # the ring is complete
            self.next = self.ring[(self.place + 1) % len(self.ring)]
        else:
            self.done(self.place)


def run(host: Host, n: int, size: int = 100) -> Result:
    ring: list[Ref] = []
    ring += [host.spawn(Player, place, ring, host.done) for place in range(size)]
    host.feed_all(ring, [JOIN])
    begin = perf_counter()
    host.feed(ring[0], [n])
    [last] = host.wait()
    return Result(n, perf_counter() - begin, got=last, want=n % size)
