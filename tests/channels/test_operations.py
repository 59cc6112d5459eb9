"""Finished operations: they hold nothing, and their object may be used again."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from callboard.channels import ChannelClosed, Selection, channel


class Value:
    """A thing that a weak reference can watch."""


async def test_an_operation_that_is_over_holds_neither_value_nor_end() -> None:
    sender, receiver = channel(1)
    value = Value()
    there = weakref.ref(value)
    sent = sender.send(value)
    await sent
    received = receiver.receive()
    await received
    del value
    gc.collect()
    assert there() is None
    ends = [weakref.ref(sender)]
    del sender
    gc.collect()
    assert ends[0]() is None
    with pytest.raises(ChannelClosed):
        await receiver.receive()
    assert sent.sent
    assert "is over" in repr(sent)


async def test_an_operation_with_a_reference_is_not_used_again() -> None:
    sender, receiver = channel(4)
    first = sender.send(1)
    await first
    second = sender.send(2)
    assert second is not first
    assert first.sent
    assert not second.sent
    await second
    with pytest.raises(RuntimeError, match="already awaited"):
        await first
    assert [await receiver.receive(), await receiver.receive()] == [1, 2]


async def test_an_operation_begins_anew_without_the_time_limit_of_the_one_before() -> None:
    async def take(operation: Any) -> Any:
        return await operation

    sender, receiver = channel(1)
    for number in range(3):
        await sender.send(number, timeout=60)
        assert await receiver.receive(timeout=60) == number
    waiting = asyncio.ensure_future(take(receiver.receive()))
    await asyncio.sleep(0)
    assert not waiting.done()
    await sender.send(3)
    assert await waiting == 3


async def test_a_selection_is_let_go_by_its_operation() -> None:
    sender, receiver = channel(1)
    await sender.send(1)
    selection = Selection([receiver])
    there = weakref.ref(selection)
    assert await selection.ready() is receiver
    del selection
    gc.collect()
    assert there() is None


async def test_values_in_iterations_and_receives_by_turns() -> None:
    sender, receiver = channel(4)
    for number in range(4):
        await sender.send(number)
    sender.close()
    assert await receiver.receive() == 0
    async for number in receiver:
        assert number == 1
        break
    assert await receiver.receive() == 2
    assert [number async for number in receiver] == [3]
    with pytest.raises(ChannelClosed):  # not the end of an iteration, as for the one before
        await receiver.receive()
