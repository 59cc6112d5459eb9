"""Tasks as actors: at rest, supervised, watched, stopped."""

from __future__ import annotations

import time
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, DrainTimeout, Supervision, Terminated
from callboard.channels import ChannelClosed, Receiver, Selection, Sender, Task, channel, select
from callboard.testing import ManualSystem, replay
from tests.channels.users import WAIT, left_in


class Collects(Task):
    def __init__(self, source: Receiver[Any], values: list[Any]) -> None:
        self.source, self.values = source, values

    async def run(self) -> None:
        async for value in self.source:
            self.values.append(value)


class Sends(Task):
    def __init__(self, sink: Sender[Any], count: int) -> None:
        self.sink, self.count = sink, count

    async def run(self) -> None:
        for number in range(self.count):
            await self.sink.send(number)


class Selects(Task):
    def __init__(self, ends: list[Any]) -> None:
        self.ends = ends

    async def run(self) -> None:
        await select(self.ends)


@pytest.mark.parametrize("event_loop", [False, True])
def test_a_task_that_waits_for_input_is_idle(event_loop: bool) -> None:
    with ActorSystem() as system:
        values: list[Any] = []
        sender, receiver = channel(1)
        _kept, other = channel(1)
        system.spawn(Collects, receiver, values, event_loop=event_loop)
        system.spawn(Selects, [other], event_loop=event_loop)
        for number in range(5):
            sender.put(number, WAIT)
            system.drain(WAIT)
        assert values == list(range(5))


def test_a_selection_that_waits_for_room_is_not_idle() -> None:
    sender, receiver = channel(1)
    _kept, empty = channel(1)
    sender.put("first")
    with ManualSystem() as system:
        system.spawn(Selects, [empty, sender.release()])
        with pytest.raises(DrainTimeout):
            system.drain()
        assert receiver.get(WAIT) == "first"
        system.drain()


@pytest.mark.parametrize("capacity", [0, 1])
def test_a_task_that_waits_for_room_is_not_idle(capacity: int) -> None:
    with ManualSystem() as system:
        sender, receiver = channel(capacity)
        system.spawn(Sends, sender, capacity + 1)
        with pytest.raises(DrainTimeout):
            system.drain()
        assert receiver.get(WAIT) == 0
        system.run_until_idle()
        if capacity:
            system.drain()
            assert receiver.get() == 1


def test_leaving_a_system_ends_the_tasks_that_wait_for_input() -> None:
    with ActorSystem(drain_timeout=3_000) as system:
        kept = [channel(1) for _ in range(10)]
        tasks = [system.spawn(Collects, receiver, []) for _, receiver in kept]
    assert not any(task.is_alive for task in tasks)
    for sender, _ in kept:
        with pytest.raises(ChannelClosed):
            sender.send_nowait(1)


class Fails(Task):
    """Fails at the number 2."""

    runs: list[Fails]

    def __init__(self, source: Receiver[Any], sink: Sender[Any], runs: list[Any]) -> None:
        self.source, self.sink = source, sink
        runs.append(self)

    async def run(self) -> None:
        async for number in self.source:
            if number == 2:
                raise ValueError(number)
            await self.sink.send(number)

    def on_stop(self) -> None:
        pass


def test_a_restarted_task_runs_anew_with_the_same_ends() -> None:
    with ManualSystem() as system:
        sender, receiver = channel(10)
        sink, results = channel(10)
        runs: list[Any] = []
        system.spawn(Fails, receiver, sink, runs, supervision=Supervision("restart"))
        for number in range(5):
            assert sender.send_nowait(number)
        sender.close()
        system.run_until_idle()
        assert left_in(results) == [0, 1, 3, 4]
        assert len(runs) == 2
        assert runs[0] is not runs[1]


def test_a_task_that_resumes_after_a_failure_has_nothing_left_to_do() -> None:
    with ManualSystem() as system:
        sender, receiver = channel(10)
        sink, _results = channel(10)
        ref = system.spawn(Fails, receiver, sink, [], supervision=Supervision("resume"))
        assert sender.send_nowait(2)
        system.run_until_idle()
        assert not ref.is_alive
        with pytest.raises(ChannelClosed):
            sender.send_nowait(3)


class Watches(Actor[Any]):
    def __init__(self, notes: list[Any]) -> None:
        self.notes = notes

    def receive(self, message: Any) -> None:
        if isinstance(message, Terminated):
            self.notes.append((message.ref, message.cause is not None))
        else:
            self.watch(message)


def test_the_watcher_of_a_task_is_told_of_its_end() -> None:
    with ManualSystem() as system:
        notes: list[Any] = []
        watcher = system.spawn(Watches, notes)
        sender, receiver = channel(10)
        ends = system.spawn(Collects, receiver, [])
        other, its_receiver = channel(10)
        sink, _results = channel(10)
        fails = system.spawn(Fails, its_receiver, sink, [])
        watcher.tell(ends)
        watcher.tell(fails)
        system.run_until_idle()
        sender.close()
        other.send_nowait(2)
        system.run_until_idle()
        assert sorted(notes, key=lambda note: note[1]) == [(ends, False), (fails, True)]


class Stops(Task):
    def __init__(self, source: Receiver[Any], notes: list[str]) -> None:
        self.source, self.notes = source, notes

    async def run(self) -> None:
        try:
            await self.source.receive()
            self.notes.append("ran")
        finally:
            self.notes.append("finally")

    def on_stop(self) -> None:
        self.notes.append("on_stop")


@pytest.mark.parametrize("stopped", [True, False])
def test_a_task_cleans_up_when_it_is_stopped(stopped: bool) -> None:
    with ManualSystem() as system:
        notes: list[str] = []
        sender, receiver = channel(10)
        task = system.spawn(Stops, receiver, notes)
        system.run_until_idle()
        assert notes == []
        if stopped:
            task.stop()
        else:
            sender.send_nowait(1)
        system.run_until_idle()
        assert notes == [*(["ran"] if not stopped else []), "finally", "on_stop"]
        with pytest.raises(ChannelClosed):
            sender.send_nowait(1)


class Pipeline(Task):
    def __init__(self, source: Receiver[int], sink: Sender[int]) -> None:
        self.source, self.sink = source, sink

    async def run(self) -> None:
        async for number in self.source:
            await self.sink.send(number + 1)


@pytest.mark.parametrize("capacity", [0, 1, 3])
@pytest.mark.parametrize("options", [{}, {"priority": 2}, {"event_loop": True}], ids=str)
def test_a_pipeline_carries_all_values_in_order(
    system: ActorSystem, capacity: int, options: dict[str, Any]
) -> None:
    source, first = channel(capacity)
    receiver = first
    for _ in range(10):
        sink, following = channel(capacity)
        system.spawn(Pipeline, receiver, sink, **options)
        receiver = following
    system.spawn(Sends, source, 100)
    assert list(receiver) == list(range(10, 110))


@replay(seeds=20)
@pytest.mark.parametrize("capacity", [0, 1, 2])
def test_every_interleaving_of_a_pipeline_ends_alike(seed: int, capacity: int) -> None:
    with ManualSystem(seed) as system:
        source, receiver = channel(capacity)
        for _ in range(3):
            sink, following = channel(capacity)
            system.spawn(Pipeline, receiver, sink)
            receiver = following
        values: list[Any] = []
        system.spawn(Sends, source, 10)
        system.spawn(Collects, receiver, values)
        system.run_until_idle()
        assert values == list(range(3, 13))
        assert system.actors == []


class Yields(Task):
    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    async def run(self) -> None:
        for _ in range(3):
            self.notes.append(self.name)
            await self.checkpoint()


def test_a_checkpoint_lets_others_run() -> None:
    with ActorSystem(workers=1) as system:
        notes: list[str] = []
        refs: list[ActorRef[Any]] = [system.spawn(Yields, name, notes) for name in "ab"]
        system.drain(WAIT)
        assert sorted(notes) == list("aaabbb")
        assert not any(ref.is_alive for ref in refs)


def test_a_tasks_time_limit_goes_by_its_systems_clock() -> None:
    class Waits(Task):
        async def run(self) -> None:
            begun = system.now
            try:
                await receiver.receive(timeout=10)
            except TimeoutError:
                notes.append(system.now - begun)

    with ManualSystem() as system:
        notes: list[float] = []
        _kept, receiver = channel(1)
        system.spawn(Waits)
        before = time.monotonic()
        system.advance(9)
        assert notes == []
        system.advance(2)
        assert notes == [10]
        assert time.monotonic() - before < WAIT


@replay(seeds=20)
def test_a_selection_gives_each_its_turn(seed: int) -> None:
    class Takes(Task):
        async def run(self) -> None:
            selection = Selection(receivers)
            async for receiver in selection:
                try:
                    taken.append(receiver.receive_nowait())
                except ChannelClosed:
                    selection.remove(receiver)

    with ManualSystem(seed) as system:
        pairs = [channel(2) for _ in range(5)]
        receivers = [receiver for _, receiver in pairs]
        taken: list[Any] = []
        for sender, _ in pairs:
            system.spawn(Sends, sender, 8)
        system.spawn(Takes)
        system.run_until_idle()
        assert sorted(taken) == sorted(list(range(8)) * 5)


class SendsOne(Task):
    """Sends a value, and waits until it was taken."""

    def __init__(self, sender: Sender[str]) -> None:
        self.output = sender

    async def run(self) -> None:
        await self.output.send("a")


class HandsOver(Task):
    """Hands a value to a receiver that waits."""

    def __init__(self, sender: Sender[str], outcomes: list[bool]) -> None:
        self.output = sender
        self.outcomes = outcomes

    async def run(self) -> None:
        await select([self.output])
        self.outcomes.append(self.output.send_nowait("b"))


class ReceivesAll(Task):
    def __init__(self, receiver: Receiver[str], got: list[str]) -> None:
        self.receiver = receiver
        self.got = got

    async def run(self) -> None:
        while True:
            self.got.append(await self.receiver.receive())


def test_a_value_handed_to_a_task_that_stops_is_a_dead_letter_beside_another_sender() -> None:
    unreceived = 0
    for seed in range(300):
        letters: list[Any] = []
        got: list[str] = []
        outcomes: list[bool] = []
        with ManualSystem(seed=seed) as system:
            system.dead_letters.subscribe(letters.append)
            sender, receiver = channel(0)
            system.spawn(HandsOver, sender.clone(), outcomes)
            system.spawn(SendsOne, sender)
            task = system.spawn(ReceivesAll, receiver, got, event_loop=True)
            while system.step():
                if outcomes == [True] and task.is_alive:
                    task.stop()  # before it goes on
        if outcomes == [True]:
            refused = [letter.message for letter in letters].count("b")
            assert got.count("b") + refused == 1
            unreceived += refused
    assert unreceived > 0
