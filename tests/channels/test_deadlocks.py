"""Circles of full channels: tasks that wait for each other forever, and how that is reported."""

from collections.abc import Iterator
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, AskTimeout
from callboard.channels import (
    ChannelClosed,
    ChannelDeadlock,
    ChannelTimeout,
    Receiver,
    Selection,
    Sender,
    Task,
    channel,
)
from callboard.core.errors import DrainTimeout
from callboard.testing import ManualSystem
from tests.waiting import until


class SendsFirst(Task):
    """Sends some values, and only then takes as many: two of its kind are a classic deadlock."""

    def __init__(
        self, sink: Sender[int], source: Receiver[int], count: int, told: list[Any]
    ) -> None:
        self.sink, self.source, self.count, self.told = sink, source, count, told

    async def run(self) -> None:
        try:
            for number in range(self.count):
                await self.sink.send(number)
            got = [await self.source.receive() for _ in range(self.count)]
            self.told.append(got)
        except ChannelDeadlock as error:
            self.told.append(str(error))


class PassesOn(Task):
    def __init__(self, source: Receiver[int], sink: Sender[int], told: list[Any]) -> None:
        self.source, self.sink, self.told = source, sink, told

    async def run(self) -> None:
        try:
            async for value in self.source:
                await self.sink.send(value)
        except ChannelDeadlock as error:
            self.told.append(str(error))


@pytest.fixture(params=["manual", "threads", "two workers"])
def any_system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    if request.param == "manual":
        system: ActorSystem = ManualSystem()
    else:
        system = ActorSystem(workers=1 if request.param == "threads" else 2, drain_timeout=60)
    with system:
        yield system


def two(system: ActorSystem, count: int) -> tuple[list[Any], Sender[int], Sender[int]]:
    told: list[Any] = []
    there, back = channel(1), channel(1)
    system.spawn(SendsFirst, there[0], back[1], count, told, name="a")
    system.spawn(SendsFirst, back[0], there[1], count, told, name="b")
    return told, there[0], back[0]


def test_one_task_of_a_circle_gets_the_error_with_the_path(any_system: ActorSystem) -> None:
    told, there, back = two(any_system, 3)
    any_system.drain()
    (text,) = [one for one in told if isinstance(one, str)]
    to_b, to_a = there._number, back._number
    assert text in (
        f"each waits for the next: /a waits for room in channel {to_b} -> "
        f"/b waits for room in channel {to_a} -> /a",
        f"each waits for the next: /b waits for room in channel {to_a} -> "
        f"/a waits for room in channel {to_b} -> /b",
    )


def test_tasks_with_enough_room_meet_no_circle(any_system: ActorSystem) -> None:
    told, _, _ = two(any_system, 1)
    any_system.drain()
    assert told == [[0], [0]]


@pytest.mark.parametrize("capacity", [0, 1, 2])
def test_growth_ends_the_circle_and_keeps_the_order(any_system: ActorSystem, capacity: int) -> None:
    told: list[Any] = []
    there = channel(capacity, on_deadlock="grow")
    back = channel(capacity)
    any_system.spawn(SendsFirst, there[0], back[1], 20, told)
    any_system.spawn(SendsFirst, back[0], there[1], 20, told)
    any_system.drain()
    assert told == [list(range(20))] * 2
    assert there[0].capacity >= 20 - capacity > back[0].capacity == capacity


def test_the_smallest_of_the_channels_that_may_grow_does(any_system: ActorSystem) -> None:
    told: list[Any] = []
    there, back = channel(2, on_deadlock="grow"), channel(1, on_deadlock="grow")
    any_system.spawn(SendsFirst, there[0], back[1], 3, told)
    any_system.spawn(SendsFirst, back[0], there[1], 3, told)
    any_system.drain()
    assert told == [[0, 1, 2]] * 2
    assert (there[0].capacity, back[0].capacity) in ((2, 4), (4, 2), (2, 2))


def test_a_wait_for_a_value_is_part_of_a_circle(any_system: ActorSystem) -> None:
    """One task waits for room, and the next for a value that is to come of it."""
    told: list[Any] = []

    class Starts(Task):
        def __init__(self, out: Sender[int], unused: Sender[int]) -> None:
            self.out, self.unused = out, unused

        async def run(self) -> None:
            try:
                await self.out.send(1)
                await self.out.send(2)
            except ChannelDeadlock as error:
                told.append(str(error))

    class WaitsElsewhere(Task):
        def __init__(self, source: Receiver[int], other: Receiver[int]) -> None:
            self.source, self.other = source, other

        async def run(self) -> None:
            try:
                await self.other.receive()
            except ChannelClosed:
                told.append("closed")

    def build() -> tuple[int, int]:  # nobody but the tasks has the ends
        out, unused = channel(1), channel(1)
        any_system.spawn(Starts, out[0], unused[0], name="starts")
        any_system.spawn(WaitsElsewhere, out[1], unused[1], name="waits")
        return out[0]._number, unused[0]._number

    full, empty = build()
    any_system.drain()
    assert told == [
        f"each waits for the next: /starts waits for room in channel {full} -> "
        f"/waits waits for a value of channel {empty} -> /starts",
        "closed",
    ]


def test_a_circle_of_empty_channels_is_at_rest(any_system: ActorSystem) -> None:
    told: list[Any] = []
    there, back = channel(1), channel(1)
    first = any_system.spawn(PassesOn, there[1], back[0], told)
    second = any_system.spawn(PassesOn, back[1], there[0], told)
    any_system.drain()
    assert told == []
    assert first.is_alive
    assert second.is_alive
    assert first.info().waits_for == f"a value of channel {there[0]._number}"


def test_a_sender_blocked_by_a_circle_of_empty_channels_waits_on(manual: ManualSystem) -> None:
    """Its path leads into the circle, and the circle is none of full channels."""
    told: list[Any] = []

    class WaitsElsewhere(PassesOn):
        def __init__(self, unused: Receiver[int], *others: Any) -> None:
            super().__init__(*others)
            self.unused = unused

    full, there, back = channel(1), channel(1), channel(1)
    first = manual.spawn(SendsFirst, full[0], channel(1)[1], 3, told)
    manual.spawn(WaitsElsewhere, full[1], there[1], back[0], told)
    manual.spawn(PassesOn, back[1], there[0], told)
    manual.run_until_idle()
    assert told == []
    assert first.info().waits_for == f"room in channel {full[0]._number}"


def test_long_circles_name_both_ends(any_system: ActorSystem) -> None:
    told: list[Any] = []
    count = 40

    class Fills(Task):
        def __init__(self, sink: Sender[int], source: Receiver[int]) -> None:
            self.sink, self.source = sink, source

        async def run(self) -> None:
            try:
                await self.sink.send(1)
                await self.sink.send(2)
            except ChannelDeadlock as error:
                told.append(str(error))

    def build() -> None:
        ring = [channel(1) for _ in range(count)]
        for number in range(count):
            any_system.spawn(Fills, ring[number][0], ring[number - 1][1], name=f"t{number}")

    build()
    any_system.drain()
    (text,) = told
    assert text.count(" -> ") == 21
    assert "... 20 more ..." in text


def test_a_wait_with_a_time_limit_is_in_no_circle(manual: ManualSystem) -> None:
    told: list[Any] = []

    class Limited(SendsFirst):
        async def run(self) -> None:
            try:
                while True:
                    await self.sink.send(1, timeout=5)
            except ChannelTimeout:
                self.told.append("timeout")

    there, back = channel(1), channel(1)
    manual.spawn(Limited, there[0], back[1], 2, told)
    manual.spawn(SendsFirst, back[0], there[1], 2, told)
    manual.run_until_idle()
    assert told == []
    manual.advance(5)
    assert told == ["timeout"]


def test_a_second_receiver_could_make_room(manual: ManualSystem) -> None:
    there, back = channel(1), channel(1)
    other = there[1].clone()
    told: list[Any] = []
    manual.spawn(SendsFirst, there[0], back[1], 2, told)
    manual.spawn(SendsFirst, back[0], there[1], 2, told)
    manual.run_until_idle()
    assert told == []
    assert other.receive_nowait() == 0  # as this thread does
    manual.run_until_idle()
    assert len(told) == 1  # no: the other one waits on, for values that were taken


def test_a_selection_waits_in_no_circle(manual: ManualSystem) -> None:
    told: list[Any] = []

    class Selects(SendsFirst):
        async def run(self) -> None:
            await self.sink.send(1)
            selection = Selection([self.sink, self.source])
            while len(self.told) < 3:
                end = await selection.ready()
                if end is self.source:
                    self.told.append(await self.source.receive())
                else:
                    await self.sink.send(2)

    there, back = channel(1), channel(1)
    manual.spawn(Selects, there[0], back[1], 3, told)
    manual.spawn(SendsFirst, back[0], there[1], 3, [])
    manual.run_until_idle()
    assert told == [0, 1, 2]


def test_a_released_end_is_in_no_circle(manual: ManualSystem) -> None:
    told: list[Any] = []
    there, back = channel(1), channel(1)
    manual.spawn(SendsFirst, there[0], back[1], 2, told)
    manual.spawn(SendsFirst, back[0], there[1], 2, told)
    manual.step()
    manual.step()  # both have begun
    there[1].release()
    manual.run_until_idle()
    assert told == []
    assert there[1].receive_nowait() == 0
    there[1].release()
    manual.run_until_idle()


def test_a_drain_that_times_out_names_the_actor_that_waits_for_room() -> None:
    sender, receiver = channel(1)
    told: list[Any] = []
    system = ActorSystem(workers=1)
    full = system.spawn(SendsFirst, sender, channel(1)[1], 3, told, name="full")
    until(lambda: full.info().waits_for == f"room in channel {sender._number}")
    with pytest.raises(DrainTimeout, match=f"/full waits .* for room in channel {sender._number}"):
        system.drain(0.3)
    assert receiver.get() == 0
    system.stop()


@pytest.mark.parametrize("seed", range(20))
def test_random_rings_of_tasks_end_by_growth_or_error(seed: int) -> None:
    """Whatever the interleaving: no task is left behind, and with growth nothing is lost."""
    for option in ("grow", "raise"):
        with ManualSystem(seed) as system:
            told: list[Any] = []
            ring = [channel(seed % 3, on_deadlock=option) for _ in range(4)]
            for number in range(4):
                system.spawn(SendsFirst, ring[number][0], ring[number - 1][1], 6, told)
            del ring
            system.drain()
            assert not system.actors
            if option == "grow":
                assert told == [list(range(6))] * 4
            else:
                assert any(isinstance(one, str) for one in told)


def test_the_look_is_cheap_to_repeat(manual: ManualSystem) -> None:
    """A side at which nobody waits any more is forgotten."""
    sender, receiver = channel(1)
    manual.spawn(SendsFirst, sender, channel(1)[1], 3, [])
    manual.run_until_idle()
    watch: Any = manual._runtime.circles
    assert len(watch.sides) == 1
    assert [receiver.receive_nowait(), receiver.receive_nowait(None)] == [0, None]
    manual.run_until_idle()
    assert receiver.receive_nowait() == 1
    manual.run_until_idle()
    assert watch.sides == []


# --- through questions ----------------------------------------------------------------------------


class Sends(Actor[Any]):
    """Answers when it has sent some values, or with what its helper answers."""

    def __init__(self, sink: Sender[int] | None, helper: ActorRef[Any] | None = None) -> None:
        self.sink, self.helper = sink, helper

    async def receive(self, message: Any) -> Any:
        if self.helper is not None:
            return self.helper.ask(message)
        assert self.sink is not None
        for number in range(3):
            await self.sink.send(number)
        return "sent"


class AsksFirst(Task):
    """Asks an actor that sends to it, and only then takes the values."""

    def __init__(
        self,
        asked: ActorRef[Any],
        source: Receiver[int],
        told: list[Any],
        timeout: float | None = None,
    ) -> None:
        self.asked, self.source, self.told, self.timeout = asked, source, told, timeout

    async def run(self) -> None:
        try:
            self.told.append(await self.asked.ask("send", timeout=self.timeout))
        except (ChannelDeadlock, AskTimeout) as error:
            self.told.append(type(error) if self.timeout else str(error))
        self.told += [await self.source.receive()]


def test_a_circle_may_lead_through_a_question(any_system: ActorSystem) -> None:
    told: list[Any] = []
    sender, receiver = channel(1)
    asked = any_system.spawn(Sends, sender, name="asked")
    any_system.spawn(AsksFirst, asked, receiver, told, name="asks")
    any_system.drain()
    assert told == [
        f"each waits for the next: /asked waits for room in channel {sender._number} -> "
        "/asks waits for an answer of /asked -> /asked",
        0,
    ]


def test_a_circle_may_lead_through_a_deferred_answer(any_system: ActorSystem) -> None:
    told: list[Any] = []
    sender, receiver = channel(1)
    helper = any_system.spawn(Sends, sender, name="helper")
    asked = any_system.spawn(Sends, None, helper, name="asked")
    any_system.spawn(AsksFirst, asked, receiver, told, name="asks")
    any_system.drain()
    assert told == [
        f"each waits for the next: /helper waits for room in channel {sender._number} -> "
        "/asks waits for an answer of /asked -> /asked waits for an answer of /helper -> /helper",
        0,
    ]


def test_a_channel_grows_for_a_question(any_system: ActorSystem) -> None:
    told: list[Any] = []
    sender, receiver = channel(1, on_deadlock="grow")
    asked = any_system.spawn(Sends, sender)
    any_system.spawn(AsksFirst, asked, receiver, told)
    any_system.drain()
    assert told == ["sent", 0]


def test_a_question_with_a_time_limit_is_in_no_circle(manual: ManualSystem) -> None:
    told: list[Any] = []
    sender, receiver = channel(1)
    asked = manual.spawn(Sends, sender)
    manual.spawn(AsksFirst, asked, receiver, told, timeout=5.0)
    manual.run_until_idle()
    assert told == []
    manual.advance(5.0)
    manual.run_until_idle()
    assert told == [AskTimeout, 0]
