"""Conservation: programs are cut at each of their awaits, and no value is lost or doubled.

Each value was received once, or is still the sender's and `sent` says so, or is a dead letter.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from callboard import ActorRef, DeadLetter
from callboard.channels import (
    ChannelClosed,
    ChannelOwnershipError,
    ChannelTimeout,
    Receiver,
    Selection,
    Sender,
    Task,
    channel,
    select,
)
from callboard.testing import ManualSystem

COUNT = 4  # values of each sender


class Book:
    """What became of each value."""

    def __init__(self) -> None:
        self.began: list[Any] = []
        self.sent: list[Any] = []
        self.kept: list[Any] = []
        self.received: list[Any] = []
        self.dead: list[Any] = []

    def note_dead(self, letter: DeadLetter) -> None:
        self.dead.append(letter.message)

    async def send(self, sender: Sender[Any], value: Any, timeout: float | None = None) -> None:
        operation = sender.send(value, timeout)
        self.began.append(value)
        try:
            await operation
            assert operation.sent
        finally:
            (self.sent if operation.sent else self.kept).append(value)

    def check(self) -> None:
        assert Counter(self.sent) + Counter(self.kept) == Counter(self.began)
        assert Counter(self.received) + Counter(self.dead) == Counter(self.sent)
        assert max(Counter(self.began).values(), default=1) == 1
        for name in "ab":
            mine = [number for one, number in self.received if one == name]
            assert mine == sorted(mine)


async def sends(book: Book, name: str, sender: Sender[Any]) -> None:
    for number in range(COUNT):
        await book.send(sender, (name, number))


async def sends_in_time(book: Book, name: str, sender: Sender[Any]) -> None:
    """Each send has no time, or little."""
    for number in range(COUNT):
        with suppress(ChannelTimeout):
            await book.send(sender, (name, number), timeout=number % 2)


async def sends_when_ready(book: Book, name: str, sender: Sender[Any]) -> None:
    for number in range(COUNT):
        while True:
            await select([sender])
            if sender.send_nowait((name, number)):
                book.began.append((name, number))
                book.sent.append((name, number))
                break


async def receives(book: Book, receivers: list[Receiver[Any]]) -> None:
    (receiver,) = receivers[:1]
    for other in receivers[1:]:
        receiver.replace(other)
    async for value in receiver:
        book.received.append(value)


async def receives_many(book: Book, receivers: list[Receiver[Any]]) -> None:
    for receiver in receivers:
        try:
            while True:
                book.received += await receiver.receive_many(2)
        except ChannelClosed:
            pass


async def receives_in_time(book: Book, receivers: list[Receiver[Any]]) -> None:
    for receiver in receivers:
        for turn in range(20):
            try:
                book.received.append(await receiver.receive(timeout=turn % 2))
            except ChannelTimeout:
                pass
            except ChannelClosed:
                break


async def selects(book: Book, receivers: list[Receiver[Any]]) -> None:
    left = list(receivers)
    while left:
        receiver = await select(left)
        try:
            book.received.append(receiver.receive_nowait())
        except ChannelClosed:
            left.remove(receiver)


async def selects_in_turn(book: Book, receivers: list[Receiver[Any]]) -> None:
    selection = Selection(receivers)
    async for receiver in selection:
        try:
            book.received.append(receiver.receive_nowait())
        except ChannelClosed:
            selection.remove(receiver)


SENDING = [sends, sends_in_time, sends_when_ready]
RECEIVING = [receives, receives_many, receives_in_time, selects, selects_in_turn]
# An event loop's time is the wall's clock, so time limits are left to the manual systems there.
SENDING_UNTIMED = [sends, sends_when_ready]
RECEIVING_UNTIMED = [receives, receives_many, selects, selects_in_turn]


def every_program(sending: list[Any], receiving: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("sending", "receiving", "capacity"),
        [
            pytest.param(one, other, capacity, id=f"{one.__name__}-{other.__name__}-{capacity}")
            for one in sending
            for other in receiving
            for capacity in (0, 1, 2)
        ],
    )


class Runs(Task):
    """A task whose work is a coroutine function's."""

    def __init__(self, work: Any, *args: Any) -> None:
        self.work, self.args = work, args

    async def run(self) -> None:
        await self.work(*self.args)


def run_cut(seed: int, victim: int, at: int, sending: Any, receiving: Any, capacity: int) -> bool:
    """Stop the victim before the system's step number `at`. False: it was all over before."""
    book = Book()
    with ManualSystem(seed, trace=False) as system:
        system.dead_letters.subscribe(book.note_dead)
        pairs = [channel(capacity) for _ in range(2)]
        tasks: list[ActorRef[Any]] = [
            system.spawn(Runs, sending, book, name, sender)
            for name, (sender, _) in zip("ab", pairs, strict=True)
        ]
        tasks.append(system.spawn(Runs, receiving, book, [receiver for _, receiver in pairs]))
        del pairs

        def reached() -> bool:
            return next(steps) >= at

        steps = itertools.count()
        was_cut = system.run_until(reached, timeout=60)
        tasks[victim].stop()
        system.run_until(lambda: False, timeout=60)
        for task in tasks:
            task.stop()
        system.run_until_idle()
    book.check()
    return was_cut


@every_program(SENDING, RECEIVING)
@pytest.mark.parametrize("victim", [0, 2], ids=["sender", "receiver"])
def test_a_task_may_be_stopped_at_each_step(
    sending: Any, receiving: Any, capacity: int, victim: int
) -> None:
    for seed in range(2):
        at = 0
        while run_cut(seed, victim, at, sending, receiving, capacity):
            at += 1
        assert at > 1


async def cancel_at(
    at: int, victim: int, sending: Any, receiving: Any, capacity: int, book: Book
) -> bool:
    """Cancel the victim at the loop's turn number `at`. False: it was done before."""
    pairs = [channel(capacity) for _ in range(2)]
    tasks = []
    for name, (sender, _) in zip("ab", pairs, strict=True):
        tasks.append(asyncio.ensure_future(sending(book, name, sender)))
        tasks[-1].add_done_callback(lambda _, sender=sender: sender.close())
    tasks.append(asyncio.ensure_future(receiving(book, [receiver for _, receiver in pairs])))
    for _ in range(at):
        await asyncio.sleep(0)
    was_cut: bool = tasks[victim].cancel()
    if victim == 2 and was_cut:
        await asyncio.wait(tasks[2:])
        for _, receiver in pairs:
            receiver.close()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and not isinstance(task.exception(), ChannelClosed):
            task.result()
    for _, receiver in pairs:  # what was left is in the channel
        receiver.close()
        try:
            while True:
                book.dead.append(receiver.receive_nowait())
        except (ChannelClosed, ChannelOwnershipError):
            pass  # of the latter kind is one that took another's place
    return was_cut


@every_program(SENDING_UNTIMED, RECEIVING_UNTIMED)
@pytest.mark.parametrize("victim", [0, 2], ids=["sender", "receiver"])
def test_a_coroutine_may_be_cancelled_at_each_await(
    sending: Any, receiving: Any, capacity: int, victim: int
) -> None:
    at = 0
    while True:
        book = Book()
        if not asyncio.run(cancel_at(at, victim, sending, receiving, capacity, book)):
            break
        book.check()
        at += 1
    book.check()
    assert at > 1


async def cancel_in_trio(
    at: int, victim: int, sending: Any, receiving: Any, capacity: int, book: Book
) -> bool:
    """Like cancel_at(), for tasks of trio."""
    import trio

    pairs = [channel(capacity) for _ in range(2)]
    scopes, over = [trio.CancelScope() for _ in range(3)], [trio.Event() for _ in range(3)]

    async def run(index: int, work: Any, *args: Any) -> None:
        with scopes[index], suppress(ChannelClosed):
            await work(book, *args)
        if index < 2:
            pairs[index][0].close()
        over[index].set()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, 0, sending, "a", pairs[0][0])
            nursery.start_soon(run, 1, sending, "b", pairs[1][0])
            nursery.start_soon(run, 2, receiving, [receiver for _, receiver in pairs])
            for _ in range(at):
                await trio.lowlevel.checkpoint()
            was_cut = not over[victim].is_set()
            scopes[victim].cancel()
            await over[2].wait()
            for _, receiver in pairs:
                with suppress(ChannelOwnershipError):  # one that took another's place
                    receiver.close()
    for _, receiver in pairs:
        with suppress(ChannelClosed, ChannelOwnershipError):
            while True:
                book.dead.append(receiver.receive_nowait())
    return was_cut


@every_program(SENDING_UNTIMED, RECEIVING_UNTIMED)
@pytest.mark.parametrize("victim", [0, 2], ids=["sender", "receiver"])
def test_a_task_of_trio_may_be_cancelled_at_each_await(
    sending: Any, receiving: Any, capacity: int, victim: int
) -> None:
    trio = pytest.importorskip("trio")
    at = 0
    while True:
        book = Book()
        was_cut = trio.run(cancel_in_trio, at, victim, sending, receiving, capacity, book)
        book.check()
        if not was_cut:
            break
        at += 1
    assert at > 1


@pytest.mark.parametrize("capacity", [0, 1])
@pytest.mark.parametrize("takes", [True, False])
async def test_a_cancelled_send_says_whether_the_value_was_sent(capacity: int, takes: bool) -> None:
    sender, receiver = channel(capacity)
    if capacity:
        assert sender.send_nowait("first")
    operation = sender.send("value")
    sending = asyncio.ensure_future(operation)
    await asyncio.sleep(0)
    assert not operation.sent
    if takes:
        assert receiver.receive_nowait() == ("first" if capacity else "value")
    sending.cancel()
    await asyncio.wait([sending])
    assert sending.cancelled() == (not operation.sent)
    # At capacity 1 there is room now, but the cancelled send does not take it.
    assert operation.sent == (takes and capacity == 0)
    assert receiver.receive_nowait(None) == ("first" if capacity and not takes else None)
