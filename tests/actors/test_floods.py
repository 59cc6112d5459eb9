"""A sender that is far ahead of its receiver: the receiver catches up."""

import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem
from callboard.testing import ManualSystem

MESSAGES = 200_000


class Counter(Actor[int]):
    def __init__(self) -> None:
        self.total = 0
        self.counted = 0

    def receive(self, number: int) -> tuple[int, int]:
        self.total += number
        self.counted += 1
        return self.counted, self.total


class Flooder(Actor[int]):
    """Sends the numbers below `end`, sixteen for each message that it gets, which is its own."""

    def __init__(self, receiver: ActorRef[int], end: int, done: threading.Event) -> None:
        self.receiver = receiver
        self.end = end
        self.done = done

    def receive(self, number: int) -> None:
        following = min(number + 16, self.end)
        for each in range(number, following):
            self.receiver.tell(each)
        if following < self.end:
            self.ref.tell(following)
        else:
            self.done.set()


def test_a_flooded_actor_s_mailbox_stays_short_and_nothing_is_lost() -> None:
    done = threading.Event()
    with ActorSystem(workers=1, monitoring="mailboxes") as system:  # two run at once, if they can
        counter = system.spawn(Counter)
        flooders = [system.spawn(Flooder, counter, MESSAGES // 2, done) for _ in range(2)]
        for flooder in flooders:
            flooder.tell(0)
        system.drain()
        total = sum(range(MESSAGES // 2)) * 2
        assert counter.ask(0).result(30) == (MESSAGES + 1, total)
        (found,) = [actor for actor in system.statistics().actors if actor.path == counter.path]
    # With equal turns the flooders end with fifteen sixteenths of all that they sent still waiting.
    assert found.peak is not None
    assert found.peak < MESSAGES // 10


def test_bystanders_have_their_turns_in_a_flood(system: ActorSystem) -> None:
    done = threading.Event()
    counter, bystander = system.spawn(Counter), system.spawn(Counter)
    flooder = system.spawn(Flooder, counter, MESSAGES, done)
    flooder.tell(0)
    answers = 0
    while not done.is_set():
        answers += 1
        assert bystander.ask(0).result(30) == (answers, 0)
    assert counter.ask(0).result(30)[0] == MESSAGES + 1


@pytest.mark.parametrize("quantum", [1, 63])
def test_a_quantum_below_the_default_bounds_what_a_bystander_waits_for(quantum: int) -> None:
    handled = 0
    waits: list[int] = []

    class Counted(Counter):
        def receive(self, number: int) -> tuple[int, int]:
            nonlocal handled
            handled += 1
            return super().receive(number)

    class Calling(Flooder):
        def receive(self, number: int) -> None:
            nonlocal handled
            handled += 1
            super().receive(number)
            bystander.tell(handled)

    class Bystander(Actor[int]):
        def receive(self, called_at: int) -> None:
            waits.append(handled - called_at)

    done = threading.Event()
    # On a busy machine, a time slice may end the bystander's turn before it has handled all.
    with ActorSystem(workers=1, quantum=quantum, time_slice=60.0) as system:
        bystander = system.spawn(Bystander)
        system.spawn(Calling, system.spawn(Counted), MESSAGES // 10, done).tell(0)
        system.drain()
    assert len(waits) == MESSAGES // 160
    assert max(waits) < 2 * quantum  # the rest of the caller's turn, and the counter's


@pytest.mark.parametrize("quantum", [1, 3])
def test_a_manual_system_keeps_to_its_quantum_in_a_flood(quantum: int) -> None:
    def run() -> list[Any]:
        done = threading.Event()
        with ManualSystem(seed=7, quantum=quantum) as system:
            counter = system.spawn(Counter)
            system.spawn(Flooder, counter, 5_000, done).tell(0)
            system.run_until_idle()
            return [(taken.path, taken.message) for taken in system.trace]

    first = run()
    assert len(first) > 5_000
    assert run() == first
