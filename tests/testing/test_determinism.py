"""One seed is one interleaving; different seeds differ."""

from __future__ import annotations

import itertools
import random

import pytest

from callboard import Actor, ActorRef, BoundedMailbox, PriorityMailbox
from callboard.streams import entry
from callboard.testing import ManualSystem
from callboard.testing.manual import Taken


class Gossip(Actor[int]):
    """Does a little of everything, as its own random numbers say."""

    def __init__(self, number: int, friends: list[ActorRef[int]]) -> None:
        self.random = random.Random(number)
        self.friends = friends

    def on_start(self) -> None:
        self.every(0.5, 1)

    async def receive(self, message: int) -> int:
        if message <= 0:
            return 0
        other = self.random.choice(self.friends)
        match self.random.randrange(6):
            case 0:
                await self.sleep(0.25)
            case 1 if other is not self.ref:
                other.ask(message - 1)
            case 2:
                raise ValueError(message)
            case 3:
                self.spawn(Gossip, message, self.friends).tell(message - 1)
            case _:
                other.tell_many([message - 1, message - 2])
        return message


def trace_of(seed: int) -> list[Taken]:
    mailboxes = itertools.cycle(
        [
            None,
            BoundedMailbox(3, "help"),
            BoundedMailbox(3, "drop_oldest"),
            BoundedMailbox(2, "fail"),
            PriorityMailbox(lambda message: -message),
        ]
    )
    with ManualSystem(seed) as system:
        friends: list[ActorRef[int]] = []
        for number, mailbox in zip(range(8), mailboxes, strict=False):
            options = {"name": f"g{number}", "mailbox": mailbox, "supervision": "restart"}
            friends.append(system.spawn(Gossip, number, friends, **options))
        for friend in friends:
            friend.tell(6)
        system.advance(1.0)
        system.stop()
        return system.trace


def test_two_runs_of_a_seed_agree() -> None:
    for seed in range(5):
        first = trace_of(seed)
        assert len(first) > 50
        assert trace_of(seed) == first


def test_different_seeds_differ() -> None:
    traces = [tuple(trace_of(seed)) for seed in range(20)]
    assert len(set(traces)) == len(traces)


class Named(Actor[str]):
    def __init__(self, came: list[str]) -> None:
        self.came = came

    def receive(self, message: str) -> None:
        self.came.append(message)


def order_of(seed: int) -> str:
    came: list[str] = []
    with ManualSystem(seed) as system:
        for letter in "abc":
            system.spawn(Named, came, name=letter).tell_many([letter, letter.upper()])
        system.run_until_idle()
    return "".join(came)


def test_seeds_reach_every_interleaving() -> None:
    interleavings = {
        "".join(order)
        for order in itertools.permutations("aAbBcC")
        if all(order.index(letter) < order.index(letter.upper()) for letter in "abc")
    }
    assert {order_of(seed) for seed in range(1500)} == interleavings
    assert len(interleavings) == 90


def test_a_seed_means_the_same_on_every_machine() -> None:
    # If the generator or the ready set changes, so does the meaning of every seed that was noted.
    assert [order_of(seed) for seed in range(3)] == EXPECTED


EXPECTED = ["cbaABC", "bBacCA", "bBcCaA"]


class Salted(str):
    """A text whose hash another process would have."""

    salt = 0

    def __hash__(self) -> int:
        return hash((str(self), self.salt))


class Sum:
    """Counts the rows of a key."""

    def __init__(self) -> None:
        self.count = 0

    def receive(self, row: int) -> list[int]:
        self.count += 1
        return [self.count]


@pytest.mark.parametrize("seed", range(5))
def test_one_seed_is_one_order_whatever_hashes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = entry("in", int).map(abs, releases_gil=True)
    keyed = rows.key_by(lambda row: Salted(row % 5), partitions=4)
    graph = keyed.stateful(Sum, releases_gil=True).map(str, releases_gil=True).collect()
    traces = []
    for salt in range(8):
        monkeypatch.setattr(Salted, "salt", salt)
        with ManualSystem(seed) as system:
            run = system.run(graph, batch_size=3, window=4)
            run.send("in", range(40))
            result = run.finish()
            traces.append((system.trace, result))
    assert all(trace == traces[0] for trace in traces)
