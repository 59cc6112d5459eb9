"""Errors that wake waiting tasks when a channel ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from callboard import ActorRef, ActorSystem
from callboard.channels import (
    ChannelCancelled,
    ChannelClosed,
    ChannelFailed,
    Receiver,
    Selection,
    Sender,
    Task,
    channel,
)
from callboard.testing import ManualSystem
from tests.channels.users import KINDS, WAIT, Users


class Holder(Task):
    """Has an end, waits at a gate, and ends as it is told there."""

    def __init__(self, end: Any, gate: Receiver[str]) -> None:
        self.end, self.gate = end, gate

    async def run(self) -> None:
        if await self.gate.receive() == "fail":
            raise ValueError("as it was told")


class Other:
    """The other side of the channel, at which a user waits."""

    def __init__(self, system: ActorSystem, end: Any) -> None:
        self.system, self.end = system, end

    def close(self) -> None:
        self.end.close()

    def cancel(self) -> None:
        self.end.cancel()

    def collect(self) -> None:
        self.end = None
        gc.collect()

    def hold(self) -> tuple[ActorRef[Any], Sender[str]]:
        gate, gates_receiver = channel(1)
        holder = self.system.spawn(Holder, self.end, gates_receiver)
        self.end = None
        return holder, gate

    def end_task(self) -> None:
        self.hold()[1].send_nowait("end")

    def fail_task(self) -> None:
        self.hold()[1].send_nowait("fail")

    def stop_task(self) -> None:
        holder, self.gate = self.hold()  # a gate that was collected would be closed
        holder.stop()


ENDS: dict[str, Callable[[Other], None]] = {
    "close": Other.close,
    "cancel": Other.cancel,
    "collected": Other.collect,
    "task ended": Other.end_task,
    "task failed": Other.fail_task,
    "task stopped": Other.stop_task,
}
OF_SENDER: dict[str, type[ChannelClosed]] = {
    "close": ChannelClosed,
    "cancel": ChannelCancelled,
    "collected": ChannelClosed,
    "task ended": ChannelClosed,
    "task failed": ChannelFailed,
    "task stopped": ChannelClosed,
}
OF_RECEIVER = OF_SENDER | {"task failed": ChannelClosed}


async def receive(words: Any, receiver: Receiver[Any], waits: Future[None]) -> Any:
    waits.set_result(None)
    return await words.receive(receiver)


async def select(words: Any, end: Any, waits: Future[None]) -> Any:
    selection = Selection([end])
    waits.set_result(None)
    await words.ready(selection)
    return end.receive_nowait() if isinstance(end, Receiver) else end.send_nowait("too much")


async def send(words: Any, sender: Sender[Any], waits: Future[None]) -> Any:
    waits.set_result(None)
    return await words.send(sender, "too much")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", list(ENDS))
@pytest.mark.parametrize("capacity", [0, 2])
@pytest.mark.parametrize(("side", "waiting"), [(0, send), (0, select), (1, receive), (1, select)])
def test_the_end_of_one_side_wakes_the_other(
    system: ActorSystem, kind: str, end: str, capacity: int, side: int, waiting: Any
) -> None:
    ends: list[Any] = [*channel(capacity)]
    if side == 0:
        for number in range(capacity):
            assert ends[0].send_nowait(number)
        ends[0].release()
    waits: Future[None] = Future()
    done = Users(system).start(kind, waiting, ends[side], waits)
    waits.result(WAIT)
    ENDS[end](Other(system, ends.pop(1 - side)))
    with pytest.raises(ChannelClosed) as caught:
        done.result(WAIT)
    assert type(caught.value) is (OF_RECEIVER, OF_SENDER)[side][end]
    if side == 1 and end == "task failed":
        assert "as it was told" in str(caught.value.__cause__)


def test_values_sent_before_come_before_the_error() -> None:
    for end, error in OF_SENDER.items():
        with ManualSystem() as system:
            sender, receiver = channel(3)
            sender.send_nowait(1)
            sender.send_nowait(2)
            sender.release()
            other = Other(system, sender)
            del sender
            ENDS[end](other)
            system.run_until_idle()
            values = []
            with pytest.raises(ChannelClosed) as caught:  # noqa: PT012
                while True:
                    values.append(receiver.receive_nowait())
            assert type(caught.value) is error
            assert values == ([] if end == "cancel" else [1, 2])


def test_one_of_the_clones_keeps_a_channel_open() -> None:
    sender, receiver = channel(3)
    other_sender, other_receiver = sender.clone(), receiver.clone()
    sender.close()
    receiver.close()
    assert sender._is_closed
    assert receiver._is_closed
    assert not other_sender._is_closed
    assert not other_receiver._is_closed
    with pytest.raises(ChannelClosed):
        sender.send_nowait(1)
    with pytest.raises(ChannelClosed):
        receiver.receive_nowait()
    assert other_sender.send_nowait(1)
    assert other_receiver.receive_nowait() == 1
    other_receiver.close()
    with pytest.raises(ChannelClosed):
        other_sender.send_nowait(1)


def test_a_cancel_is_for_all_clones() -> None:
    sender, receiver = channel(3)
    other_sender, other_receiver = sender.clone(), receiver.clone()
    receiver.cancel()
    for operation in (
        sender.clone,
        other_receiver.receive_nowait,
        lambda: other_sender.send_nowait(1),
        lambda: sender.send_nowait(1),
    ):
        with pytest.raises(ChannelCancelled):
            operation()


def test_an_end_may_be_closed_again() -> None:
    for end in channel(1):
        end.close()
        end.close()
        end.cancel()
        end.cancel()
        end.close()
        assert end._is_closed


def test_a_closed_receiver_receives_the_values_in_the_channel() -> None:
    sender, receiver = channel(3)
    sender.send_nowait(1)
    sender.send_nowait(2)
    receiver.close()
    with pytest.raises(ChannelClosed, match="all receivers have ended"):
        sender.send_nowait(3)
    assert sender._is_closed
    assert list(receiver) == [1, 2]


def test_iterating_ends_at_a_close_and_raises_other_ends() -> None:
    sender, receiver = channel(3)
    sender.send_nowait(1)
    sender.cancel()
    with pytest.raises(ChannelCancelled):
        list(receiver)


@pytest.mark.parametrize("clones", [0, 1])
@pytest.mark.parametrize("capacity", [0, 1])
async def test_closing_an_end_wakes_its_own_waits(clones: int, capacity: int) -> None:
    """Coroutines of one event loop share their ends."""
    sender, receiver = channel(capacity)
    others = [(sender.clone(), receiver.clone()) for _ in range(clones)]
    waiting = asyncio.ensure_future(receiver.receive())
    await asyncio.sleep(0)
    receiver.close()
    with pytest.raises(ChannelClosed):
        await asyncio.wait_for(waiting, WAIT)

    sender, receiver = channel(capacity)
    others += [(sender.clone(), receiver.clone()) for _ in range(clones)]
    for number in range(capacity):
        assert sender.send_nowait(number)
    operation = sender.send("too much")
    waiting = asyncio.ensure_future(operation)
    await asyncio.sleep(0)
    sender.close()
    with pytest.raises(ChannelClosed):
        await asyncio.wait_for(waiting, WAIT)
    assert not operation.sent


@pytest.mark.parametrize("end", ["close", "cancel", "collected"])
def test_channels_that_were_to_follow_end_with_the_receiver(end: str) -> None:
    with ManualSystem() as system:
        _, receiver = channel(1)
        sender, following = channel(1)
        assert sender.send_nowait("left")
        receiver.replace(following)
        other = Other(system, receiver)
        del receiver
        ENDS[end](other)
        with pytest.raises(ChannelClosed) as caught:
            sender.send_nowait("more")
        assert type(caught.value) is OF_RECEIVER[end]
