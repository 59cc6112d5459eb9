"""A send that is cancelled when its value was taken: it returns, and is not cancelled."""

from __future__ import annotations

import asyncio
import random

import pytest

from callboard.channels import (
    ChannelClosed,
    ChannelEmpty,
    ChannelTimeout,
    Receiver,
    Sender,
    channel,
)
from callboard.channels.sender import Send
from tests.channels.users import WAIT


async def test_a_send_whose_value_was_taken_returns_though_its_task_is_cancelled() -> None:
    sender, receiver = channel(0)
    operation = sender.send("value")

    async def send() -> str:
        await operation
        return "sent"

    sending = asyncio.ensure_future(send())
    await asyncio.sleep(0)
    assert await receiver.receive() == "value"
    assert sending.cancel()
    assert await sending == "sent"
    assert operation.sent


async def test_the_cancellation_comes_at_the_next_await() -> None:
    sender, receiver = channel(0)
    after: list[int] = []

    async def send() -> None:
        await sender.send("value")
        after.append(asyncio.current_task().cancelling())  # type: ignore[union-attr]
        await asyncio.Event().wait()

    sending = asyncio.ensure_future(send())
    await asyncio.sleep(0)
    assert receiver.receive_nowait() == "value"
    assert sending.cancel("why")
    with pytest.raises(asyncio.CancelledError, match="why"):
        await sending
    assert after == [1]
    assert sending.cancelling() == 1


async def test_a_time_limit_of_asyncio_that_comes_too_late_cancels_nothing_later() -> None:
    sender, receiver = channel(0)
    over: list[asyncio.Timeout] = []

    async def send() -> None:
        async with asyncio.timeout(WAIT) as limit:
            over.append(limit)
            await sender.send("value")
        for _ in range(3):
            await asyncio.sleep(0)
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]

    sending = asyncio.ensure_future(send())
    await asyncio.sleep(0)
    over[0].reschedule(0)
    await asyncio.sleep(0)  # its timer is the next that runs
    assert receiver.receive_nowait() == "value"
    await sending
    assert over[0].expired()


async def test_a_time_limit_of_asyncio_still_ends_the_code_after_the_send() -> None:
    sender, receiver = channel(0)
    over: list[asyncio.Timeout] = []

    async def send() -> None:
        async with asyncio.timeout(WAIT) as limit:
            over.append(limit)
            await sender.send("value")
            await asyncio.Event().wait()

    sending = asyncio.ensure_future(send())
    await asyncio.sleep(0)
    assert receiver.receive_nowait() == "value"
    over[0].reschedule(0)
    with pytest.raises(TimeoutError):
        await sending
    assert sending.cancelling() == 0


async def test_a_task_group_still_ends_a_sender_whose_value_was_taken() -> None:
    sender, receiver = channel(0)
    sent: list[int] = []

    async def send() -> None:
        for number in range(2):
            await sender.send(number)
            sent.append(number)

    async def fail() -> None:
        assert receiver.receive_nowait() == 0
        raise ValueError("as it was told")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(send())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as raised:
        await both()
    assert [type(error) for error in raised.value.exceptions] == [ValueError]
    assert sent == [0]
    with pytest.raises(ChannelTimeout):
        receiver.get(0)


def test_in_trio_the_send_returns_and_the_next_checkpoint_is_cancelled() -> None:
    trio = pytest.importorskip("trio")
    testing = pytest.importorskip("trio.testing")

    async def main() -> None:
        sender, receiver = channel(0)
        operation = sender.send("value")
        after: list[str] = []

        async def send() -> None:
            await operation
            after.append("sent")
            await trio.lowlevel.checkpoint()
            after.append("not cancelled")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await testing.wait_all_tasks_blocked()
            assert receiver.receive_nowait() == "value"
            nursery.cancel_scope.cancel()
        assert after == ["sent"]
        assert operation.sent

    trio.run(main)


class Book:
    """Values whose sends have returned, and those that were received."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.operations: list[tuple[int, Send]] = []
        self.received: list[int] = []

    async def send(self, sender: Sender[int]) -> None:
        """Send values until cancelled."""
        while True:
            value = len(self.operations)
            operation = sender.send(value)
            self.operations.append((value, operation))
            await operation
            self.sent.append(value)

    async def take(self, receiver: Receiver[int]) -> None:
        """Receive all, as a task."""
        async for value in receiver:
            self.received.append(value)

    def take_in_thread(self, receiver: Receiver[int]) -> None:
        """Receive all."""
        self.received.extend(receiver)

    def check(self) -> None:
        """Each value was received once if its send has returned, and else never."""
        assert self.sent
        assert self.received == self.sent
        assert [value for value, operation in self.operations if operation.sent] == self.sent


TURNS = 50


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("capacity", [0, 1])
async def test_a_value_is_received_if_its_send_returned(capacity: int, in_thread: bool) -> None:
    chance, book = random.Random(capacity), Book()
    for _ in range(TURNS):
        sender, receiver = channel(capacity)
        receiver.release()
        before = len(book.sent)
        sending = asyncio.ensure_future(book.send(sender))
        receiving = asyncio.ensure_future(
            asyncio.to_thread(book.take_in_thread, receiver) if in_thread else book.take(receiver)
        )
        while len(book.sent) == before:
            await asyncio.sleep(0)
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)
        assert sending.cancel()
        await asyncio.wait([sending])
        assert sending.cancelled()
        sender.close()
        await receiving
    book.check()


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("capacity", [0, 1])
def test_in_trio_a_value_is_received_if_its_send_returned(capacity: int, in_thread: bool) -> None:
    trio = pytest.importorskip("trio")
    chance, book = random.Random(capacity), Book()

    async def take(receiver: Receiver[int]) -> None:
        if in_thread:
            await trio.to_thread.run_sync(book.take_in_thread, receiver)
        else:
            await book.take(receiver)

    async def main() -> None:
        for _ in range(TURNS):
            sender, receiver = channel(capacity)
            receiver.release()
            before = len(book.sent)
            async with trio.open_nursery() as receiving:
                receiving.start_soon(take, receiver)
                with trio.CancelScope() as scope:
                    async with trio.open_nursery() as sending:
                        sending.start_soon(book.send, sender)
                        while len(book.sent) == before:
                            await trio.lowlevel.checkpoint()
                        for _ in range(chance.randrange(20)):
                            await trio.lowlevel.checkpoint()
                        scope.cancel()
                assert scope.cancelled_caught
                sender.close()

    trio.run(main)
    book.check()


@pytest.mark.parametrize("closes", [False, True])
async def test_peek_sees_the_value_that_a_cancelled_receive_left(closes: bool) -> None:
    sender, receiver = channel(0)

    async def receive() -> object:
        return await receiver.receive()

    receiving = asyncio.ensure_future(receive())
    await asyncio.sleep(0)
    assert sender.send_nowait("value")
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    if closes:
        sender.close()
    assert receiver.peek() == "value"
    assert await receiver.receive() == "value"
    with pytest.raises(ChannelClosed if closes else ChannelEmpty):
        receiver.peek()


async def test_peek_does_not_see_an_offered_value() -> None:
    sender, receiver = channel(0)
    sending = asyncio.ensure_future(sender.send("value"))
    await asyncio.sleep(0)
    with pytest.raises(ChannelEmpty):
        receiver.peek()
    assert receiver.receive_nowait() == "value"
    await sending
