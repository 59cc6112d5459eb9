"""Channels from and to actors and streams."""

import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, CallboardError
from callboard.channels import ChannelClosed, ChannelOwnershipError, Receiver, Sender, Task, channel
from callboard.streams import RunTimeout, StreamError, entry
from callboard.testing import ManualSystem

WAIT = 60


class Keeps(Actor[int]):
    def __init__(self, kept: list[int]) -> None:
        self.kept = kept

    def receive(self, message: int) -> None:
        self.kept.append(message)


class Held(Keeps):
    """Handles its first message only when it may."""

    def __init__(self, kept: list[int], may: threading.Event) -> None:
        super().__init__(kept)
        self.may = may

    def receive(self, message: int) -> None:
        assert self.may.wait(WAIT)
        super().receive(message)


# --- into an actor --------------------------------------------------------------------------------


def test_an_actor_is_told_each_value_in_order(system: ActorSystem) -> None:
    kept: list[int] = []
    sender, receiver = channel(3)
    task = system.spawn(Keeps, kept).pipe(receiver)
    for number in range(100):
        sender.put(number, timeout=WAIT)
    sender.close()
    system.drain()
    assert kept == list(range(100))
    assert not task.is_alive


def test_pipe_releases_a_receiver_that_was_used(system: ActorSystem) -> None:
    kept: list[int] = []
    sender, receiver = channel(3)
    sender.put(1)
    sender.put(2)
    assert receiver.get() == 1
    system.spawn(Keeps, kept).pipe(receiver)
    system.drain()
    assert kept == [2]
    with pytest.raises(ChannelOwnershipError):
        receiver.receive_nowait()


def test_a_full_mailbox_holds_the_channel_up() -> None:
    kept: list[int] = []
    may = threading.Event()
    with ActorSystem(workers=2) as system:
        sender, receiver = channel(2)
        held = system.spawn(
            Held,
            kept,
            may,
            dedicated=True,
            mailbox=BoundedMailbox(2, overflow="block", timeout=WAIT),
        )
        held.pipe(receiver)
        # Two in the channel, one with the task, two in the mailbox, one with the actor.
        for number in range(6):
            sender.put(number, timeout=WAIT)
        with pytest.raises(TimeoutError):
            sender.put(6, timeout=0.2)
        may.set()
        sender.close()
        system.drain()
    assert kept == list(range(6))


def test_the_end_of_the_actor_is_the_end_of_the_channel(manual: ManualSystem) -> None:
    sender, receiver = channel(2)
    ref = manual.spawn(Keeps, [])
    ref.pipe(receiver)
    manual.run_until_idle()
    letters: list[Any] = []
    manual.dead_letters.subscribe(letters.append)
    ref.stop()
    sender.put(1)
    manual.run_until_idle()
    assert sender._is_closed
    assert not manual.actors
    assert [letter.message for letter in letters] == [1]


@pytest.mark.parametrize("wrong", [None, [1], channel(1)[0]])
def test_a_pipe_wants_a_receiver(system: ActorSystem, wrong: Any) -> None:
    ref: ActorRef[Any] = system.spawn(Keeps, [])
    with pytest.raises(TypeError, match=r"pipe\(\) expects the receiver of a channel"):
        ref.pipe(wrong)


# --- into a stream --------------------------------------------------------------------------------

MODELS = ["dynamic", "manual", "dedicated", "assigned"]


@pytest.mark.parametrize("model", MODELS)
def test_a_receiver_is_rows_of_an_entry(system: ActorSystem, model: str) -> None:
    sender, receiver = channel(4)

    def produce() -> None:
        with sender:
            for number in range(1000):
                sender.put(number, timeout=WAIT)

    thread = threading.Thread(target=produce)
    thread.start()
    run = system.run(entry("in", int).map(lambda number: 2 * number).collect(), threading=model)
    run.send("in", receiver)
    thread.join(WAIT)
    assert run.finish(WAIT) == [2 * number for number in range(1000)]


def test_a_row_does_not_wait_for_a_batch(system: ActorSystem) -> None:
    """The producer sends the next one only when the last one has gone through the stream."""
    sender, receiver = channel(4)
    came = threading.Semaphore(0)

    def produce() -> None:
        with sender:
            for number in range(10):
                sender.put(number, timeout=WAIT)
                assert came.acquire(timeout=WAIT)

    thread = threading.Thread(target=produce)
    thread.start()
    run = system.run(entry("in", int).to(lambda _: came.release()), batch_size=512)
    run.send("in", receiver)
    thread.join(WAIT)
    run.finish(WAIT)


def test_a_task_hands_rows_to_a_run(system: ActorSystem) -> None:
    sender, receiver = channel(4)
    run = system.run(entry("in", int).collect())

    class Feeds(Task):
        async def run(self) -> None:
            try:
                while True:
                    run.send("in", await receiver.receive_many(512))
            except ChannelClosed:
                pass

    system.spawn(Feeds)
    with sender:
        for number in range(100):
            sender.put(number, timeout=WAIT)
    system.drain()
    assert run.finish(WAIT) == list(range(100))


# --- out of a stream ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_sender_is_the_sink_of_a_stream(system: ActorSystem, model: str) -> None:
    sender, receiver = channel(4)
    taken: list[int] = []
    thread = threading.Thread(target=lambda: taken.extend(receiver))
    thread.start()
    run = system.run(entry("in", int).map(lambda number: 2 * number).to(sender), threading=model)
    run.send("in", range(1000))
    run.finish(WAIT)
    thread.join(WAIT)  # the end of the run is the end of the channel
    assert taken == [2 * number for number in range(1000)]
    assert sender._is_closed


class NotesFull:
    """A sink that says when its channel is full."""

    def __init__(self, sender: Sender[int]) -> None:
        self.sender = sender
        self.is_full = threading.Event()

    def put(self, row: int) -> None:
        if not self.sender.send_nowait(row):
            self.is_full.set()
            self.sender.put(row)

    def close(self) -> None:
        self.sender.close()


def test_a_full_channel_holds_the_stream_up(system: ActorSystem) -> None:
    sender, receiver = channel(1)
    sink = NotesFull(sender)
    run = system.run(entry("in", int).to(sink), batch_size=1, window=2)
    run.send("in", [0, 1], timeout=WAIT)
    assert sink.is_full.wait(WAIT)
    sent = 2
    with pytest.raises(RunTimeout) as caught:  # noqa: PT012 - the window has room for some
        while sent < 100:
            run.send("in", [sent], timeout=0)
            sent += 1
    sent += caught.value.sent
    assert sent <= 4
    received: list[int] = []
    thread = threading.Thread(target=lambda: received.extend(receiver))
    thread.start()
    run.send("in", caught.value.unsent, timeout=WAIT)
    run.send("in", range(sent + len(caught.value.unsent), 100), timeout=WAIT)
    run.finish(WAIT)
    thread.join(WAIT)
    assert received == list(range(100))


@pytest.mark.parametrize("model", MODELS)
def test_a_row_for_a_channel_without_receivers_fails_the_run(
    system: ActorSystem, model: str
) -> None:
    sender, receiver = channel(4)
    receiver.close()
    run = system.run(entry("in", int).to(sender), threading=model)
    with pytest.raises(StreamError) as caught:  # noqa: PT012 - in `manual` the first one raises
        run.send("in", [1])
        run.finish(WAIT)
    assert isinstance(caught.value.__cause__, ChannelClosed)


def test_rows_for_a_channel_without_receivers_can_be_skipped(system: ActorSystem) -> None:
    sender, receiver = channel(4)
    receiver.close()
    run = system.run(entry("in", int).to(sender, errors="skip"))
    run.send("in", [1, 2])
    run.finish(WAIT)
    assert sender._is_closed


def test_an_object_with_put_and_close_is_a_sink(system: ActorSystem) -> None:
    class Shelf:
        def __init__(self) -> None:
            self.rows: list[int] = []
            self.closed = 0

        def put(self, row: int) -> None:
            self.rows.append(row)

        def close(self) -> None:
            self.closed += 1

    shelf = Shelf()
    run = system.run(entry("in", int).to(shelf))
    run.send("in", [1, 2, 3])
    run.finish(WAIT)
    assert (shelf.rows, shelf.closed) == ([1, 2, 3], 1)


def test_a_run_that_is_cancelled_closes_its_channel(system: ActorSystem) -> None:
    sender, receiver = channel(4)
    run = system.run(entry("in", int).to(sender))
    run.send("in", [1])
    assert receiver.get(timeout=WAIT) == 1
    run.cancel()
    with pytest.raises(ChannelClosed):
        receiver.get(timeout=WAIT)


# --- in a manual system ---------------------------------------------------------------------------


def test_a_thread_that_waits_at_a_channel_runs_its_manual_system(manual: ManualSystem) -> None:
    there, back = channel(1), channel(1)

    class Doubles(Task):
        def __init__(self, source: Receiver[int], sink: Sender[int]) -> None:
            self.source, self.sink = source, sink

        async def run(self) -> None:
            async for number in self.source:
                await self.sink.send(2 * number)

    manual.spawn(Doubles, there[1], back[0])
    manual.run_until_idle()
    for number in range(5):
        there[0].put(number)
        assert back[1].get(timeout=1) == 2 * number
    with pytest.raises(CallboardError, match="its system is idle"):
        back[1].get()
    with pytest.raises(TimeoutError):
        back[1].get(timeout=1)
