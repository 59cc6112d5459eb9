"""The cost of priority policies and monitoring levels: python tests/bench/policy_cost.py [ROUNDS]

One worker, and a ring of actors that pass tokens on: with one token one actor is ready at a time,
with as many as actors nearly all are. Settings take turns, and each shows the least processor time
of its rounds, because what other programs do can only add to it.
"""

import sys
from collections import deque
from time import process_time
from typing import Any

from callboard import Actor, ActorRef, ActorSystem
from callboard.policies import PriorityPolicy

ACTORS = 100
MESSAGES = 1_000_000  # in 20 ms the clock of times gets up to speed


class FifoInPython(PriorityPolicy):
    """What `Fifo` does, written by a user."""

    def __init__(self) -> None:
        self.actors: deque[ActorRef[Any]] = deque()

    def put_ready(self, actor: ActorRef[Any]) -> None:
        self.actors.append(actor)

    def fetch_ready(self) -> ActorRef[Any]:
        return self.actors.popleft()


class Link(Actor[Any]):
    """Passes a number on, less one."""

    __slots__ = ("following",)

    def receive(self, message: Any) -> None:
        if message.__class__ is not int:
            self.following = message
        elif message:
            self.following.tell(message - 1)


SETTINGS: dict[str, dict[str, Any]] = {
    "Fifo, monitoring off": {},
    "TwoLevel": {"priority": "two_level"},
    "Weighted": {"priority": "weighted"},
    "ShortestFirst": {"priority": "shortest_first"},
    "LongestQueue": {"priority": "longest_queue"},
    "Fifo in Python": {"priority": FifoInPython},
    "monitoring times": {"monitoring": "times"},
    "monitoring mailboxes": {"monitoring": "mailboxes"},
    "monitoring workers": {"monitoring": "workers"},
}


def nanoseconds(tokens: int, options: dict[str, Any]) -> float:
    """Return the processor time for a message."""
    hops = MESSAGES // tokens
    with ActorSystem(workers=1, quantum=1, **options) as system:
        ring = [system.spawn(Link, priority=i % 4) for i in range(ACTORS)]
        for link, following in zip(ring, ring[1:] + ring[:1], strict=True):
            link.tell(following)
        system.drain()
        begin = process_time()
        for link in ring[:tokens]:
            link.tell(hops - 1)
        system.drain()
        spent = process_time() - begin
        handled = sum(link.statistics().messages for link in ring)
    if handled != ACTORS + hops * tokens:
        raise AssertionError(f"{handled} messages were handled, not {ACTORS + hops * tokens}")
    return spent / (hops * tokens) * 1e9


def main(rounds: int) -> None:
    best: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for name, options in SETTINGS.items():
            for tokens in (1, ACTORS):
                spent = nanoseconds(tokens, options)
                best[name, tokens] = min(spent, best.get((name, tokens), spent))
    print("| nanoseconds for a message | 1 actor ready | 100 actors ready |")
    print("|---|---|---|")
    for name in SETTINGS:
        print(f"| {name} | {best[name, 1]:.0f} | {best[name, ACTORS]:.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
