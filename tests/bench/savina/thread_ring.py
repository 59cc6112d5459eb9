"""Thread ring: a message goes n hops round a ring of 100 actors, falling by one at each.

With `rings` there are several that know nothing of each other, which workers can run in parallel.
"""

from collections.abc import Callable

from hosts.base import Behaviour, Host, Ref
from savina.result import Result
from usage import Watch

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


def run(host: Host, n: int, size: int = 100, rings: int = 1) -> Result:
    made: list[list[Ref]] = []
    for _ in range(rings):
        ring: list[Ref] = []
        ring += [host.spawn(Player, place, ring, host.done) for place in range(size)]
        made.append(ring)
    for ring in made:  # when all are spawned: what feeds native ones is an actor, too
        host.feed_all(ring, [JOIN])
    watch = Watch()
    for ring in made:
        host.feed(ring[0], [n])
    last = host.wait(rings)
    return Result(n * rings, **watch.stop(), got=last, want=[n % size] * rings)
