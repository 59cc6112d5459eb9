"""Fairness: a ready actor waits for at most one turn of each actor that was ready before it.

Counted in messages, not in time. One worker runs all; where there is a second one it is kept busy,
so that it steals nothing: a stolen actor waits for fewer turns, beside a worker that goes on.
"""

import sys
from array import array
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem
from callboard.policies import Fixed
from tests.scheduling.conftest import Hold, hold  # noqa: F401
from tests.tokenless import tokenless

PAIRS = 3
BALLS = 200  # of a pair: enough to make each turn one of a whole quantum
CALLS = 40
MOST_MESSAGES = 200_000  # if the third is never heard

# What is noted of a game.
COUNT, LONGEST, CALLED = range(3)


class Chatty(Actor[int]):
    """Hands each ball to its partner, and now and then calls a third, until it has enough."""

    def __init__(
        self, notes: Any, third: ActorRef[int], pair: list[ActorRef[int]], partner: int
    ) -> None:
        self.notes = notes
        self.third = third
        self.pair = pair
        self.partner = partner

    def receive(self, message: int) -> None:
        self.notes[COUNT] += 1
        if self.notes[CALLED] == CALLS or self.notes[COUNT] > MOST_MESSAGES:
            return
        if self.notes[COUNT] % 997 == 0:
            self.third.tell(self.notes[COUNT])
        self.pair[self.partner].tell(message)


class Third(Actor[int]):
    """Notes how many messages the pairs have handled since it was called."""

    def __init__(self, notes: Any) -> None:
        self.notes = notes

    def receive(self, message: int) -> None:
        self.notes[CALLED] += 1
        self.notes[LONGEST] = max(self.notes[LONGEST], self.notes[COUNT] - message)


@pytest.fixture(params=["Python", "native"])
def players(request: pytest.FixtureRequest) -> ModuleType:
    """The module that has the actors of this test."""
    if request.param == "Python":
        return sys.modules[__name__]
    behaviours: ModuleType = request.getfixturevalue("behaviours")
    return behaviours


def play(system: ActorSystem, players: ModuleType) -> Any:
    """Let pairs talk to each other; return what was noted."""
    notes = array("q", [0, 0, 0])
    third = system.spawn(players.Third, notes)
    for _ in range(PAIRS):
        pair: list[ActorRef[int]] = []
        pair += [system.spawn(players.Chatty, notes, third, pair, partner) for partner in (1, 0)]
        pair[0].tell_many(range(BALLS))
    return notes


@pytest.mark.parametrize("quantum", [1, 64])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_woken_actor_waits_for_one_turn_of_each_ready_actor(
    workers: int,
    quantum: int,
    players: ModuleType,
    hold: Hold,  # noqa: F811
) -> None:
    with (
        tokenless(workers=workers, quantum=quantum) as system,
        nullcontext() if workers == 1 else hold(system, Fixed(1)),
    ):
        notes = play(system, players)
        while notes[CALLED] < CALLS and notes[COUNT] <= MOST_MESSAGES:
            pass
    assert notes[CALLED] == CALLS
    assert notes[LONGEST] < 2 * PAIRS * quantum


class Witness(Actor[Any]):
    """Says how many messages another has handled."""

    def receive(self, handled: Any) -> int:
        count: int = handled[0]
        return count


def test_slow_native_actors_take_turns(behaviours: ModuleType, hold: Hold) -> None:  # noqa: F811
    with ActorSystem(workers=1) as system:
        handled = array("q", [0])
        slow, witness = system.spawn(behaviours.Slow, handled), system.spawn(Witness)
        with hold(system):
            slow.tell_many([20_000_000] * 64)  # of 20 ms each, several ticks of the clock
            seen = witness.ask(handled)
        assert seen.result(60) == 1
        slow.stop()
