"""Big: each of 120 actors pings random others, one at a time, n times."""

from collections.abc import Callable
from itertools import cycle
from random import Random

from hosts.base import Behaviour, Host, Ref
from savina.result import Result
from usage import Watch

ACTORS = 120
PONG = -1
REPORT = -2


class Chatter(Behaviour):
    """Answer pings, which carry their sender's number, and ping another after each pong."""

    def __init__(
        self, number: int, n: int, peers: list[Ref], done: Callable[[int], object]
    ) -> None:
        others = [other for other in range(ACTORS) if other != number]
        Random(number).shuffle(others)
        self.others = cycle(others)
        self.number = number
        self.left = n
        self.peers = peers
        self.done = done
        self.served = 0

    def receive(self, message: int) -> int | None:
        if message >= 0:
            self.served += 1
            self.peers[message].tell(PONG)
        elif message == REPORT:
            return self.served
        elif self.left:
            self.left -= 1
            self.peers[next(self.others)].tell(self.number)
        else:
            self.done(self.number)
        return None


def run(host: Host, n: int) -> Result:
    peers: list[Ref] = []
    peers += [host.spawn(Chatter, number, n, peers, host.done) for number in range(ACTORS)]
    watch = Watch()
    host.feed_all(peers, [PONG])
    finished = host.wait(ACTORS)
    spent = watch.stop()
    served = sum(host.ask(peer, REPORT) for peer in peers)
    return Result(
        2 * n * ACTORS,
        got=[sorted(finished), served],
        want=[list(range(ACTORS)), n * ACTORS],
        **spent,
    )
