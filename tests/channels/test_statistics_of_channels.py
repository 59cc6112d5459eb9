"""Statistics of tasks and of their ends of channels."""

from __future__ import annotations

import time
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox
from callboard.channels import Receiver, Sender, Task, channel
from callboard.scheduling.monitor import EndStatistics


class Moves(Task):
    """Moves values on, and keeps the ends."""

    def __init__(self, source: Receiver[int], sink: Sender[int], spare: Sender[int]) -> None:
        self.source, self.sink, self.spare = source, sink, spare

    async def run(self) -> None:
        async for number in self.source:
            await self.sink.send(number)


@pytest.mark.parametrize("level", ["off", "times", "channels", "workers"])
@pytest.mark.parametrize("event_loop", [False, True])
def test_the_ends_of_live_actors_are_listed(level: str, event_loop: bool) -> None:
    first, second, third = channel(4), channel(8), channel(1)
    with ActorSystem(workers=1, monitoring=level) as system:
        system.spawn(Moves, first[1], second[0], third[0], name="moves", event_loop=event_loop)
        for number in range(3):
            first[0].put(number)
        assert second[1].get(30.0) == 0
        system.drain()
        found = system.statistics()
        counted = level in ("channels", "workers")
        moved, unused = (3, 0) if counted else (None, None)
        assert found.channels == (
            EndStatistics(first[1]._number, "r", "I", moved, 0, 4, "/moves"),
            EndStatistics(second[0]._number, "w", "I", moved, 2, 8, "/moves"),
            EndStatistics(third[0]._number, "w", "O" if counted else "I", unused, 0, 1, "/moves"),
        )
        assert f"{second[0]._number}     w      I" in str(found)
        first[0].close()
        assert system.join(30.0)
        assert system.statistics().channels == ()


def test_a_closed_end_is_told_as_closed() -> None:
    sender, receiver = channel(4)

    class Closes(Task):
        def __init__(self, end: Sender[int], wait: Receiver[int]) -> None:
            self.end, self.wait = end, wait

        async def run(self) -> None:
            await self.end.send(1)
            self.end.close()
            await self.wait.receive()

    go, wait = channel(1)
    with ActorSystem(workers=1, monitoring="channels") as system:
        system.spawn(Closes, sender, wait, name="closes")
        system.drain()
        states = {end.channel: (end.state, end.moved) for end in system.statistics().channels}
        go.put(1)
    assert states == {sender._number: ("C", 1), wait._number: ("I", 0)}
    assert list(receiver) == [1]


def test_a_tasks_times_add_up() -> None:
    began = time.monotonic()
    sender, receiver = channel(1)
    with ActorSystem(workers=1, monitoring="times") as system:
        system.spawn(Moves, receiver, channel(1)[0], channel(1)[0], name="moves")
        system.drain()
        found = system.statistics().of("/moves")
        assert found.created is not None
        assert found.alive is not None
        assert found.idle is not None
        assert found.total is not None
        assert began <= found.created <= time.monotonic()
        assert found.created + found.alive <= time.monotonic()
        assert found.alive == pytest.approx(found.total + found.idle)
        assert found.dispatches == 1
        sender.close()
    with ActorSystem(workers=1) as system:
        system.spawn(Moves, channel(1)[1], channel(1)[0], channel(1)[0], name="moves")
        system.join(30.0)
        assert system.statistics().actors == ()


# --- what an actor waits for ----------------------------------------------------------------------


def test_an_actor_that_waits_for_room_on_its_worker_says_at_whom() -> None:
    """The receiver runs inside the sender's dispatch, and looks at it."""

    class Looks(Actor[ActorRef[Any]]):
        def __init__(self, seen: list[Any]) -> None:
            self.seen = seen

        def receive(self, message: ActorRef[Any]) -> None:
            self.seen.append(message.info().waits_for)

    class Fills(Actor[None]):
        def __init__(self, looks: ActorRef[Any]) -> None:
            self.looks = looks

        def receive(self, message: None) -> None:
            for _ in range(2):
                self.looks.tell(self.ref)

    seen: list[Any] = []
    with ActorSystem(workers=1) as system:
        looks = system.spawn(Looks, seen, name="looks", mailbox=BoundedMailbox(1, "help"))
        fills = system.spawn(Fills, looks, name="fills")
        fills.tell(None)
        system.drain()
        assert fills.info().waits_for == "a message"
    assert seen == ["room at /looks", "a message"]
