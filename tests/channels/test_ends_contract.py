"""Every kind of end, used by every kind of user."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from callboard.channels import (
    ChannelClosed,
    ChannelEmpty,
    ChannelTimeout,
    Receiver,
    Selection,
    Sender,
    channel,
)
from tests.channels.users import KINDS, WAIT, Users

PAIRS = list(itertools.product(KINDS, KINDS))
every_kind = pytest.mark.parametrize("kind", KINDS)
every_pair = pytest.mark.parametrize(("left", "right"), PAIRS, ids="-".join)
every_capacity = pytest.mark.parametrize("capacity", [0, 1, 3, 16])


async def send_all(words: Any, sender: Sender[int], count: int) -> None:
    for number in range(count):
        await words.send(sender, number)
    sender.close()


async def receive_all(words: Any, receiver: Receiver[int]) -> list[int]:
    return [value async for value in words.values(receiver)]


@every_pair
@every_capacity
def test_all_values_come_in_order(users: Users, left: str, right: str, capacity: int) -> None:
    sender, receiver = channel(capacity)
    done = users.start(left, send_all, sender, 50)
    assert users.run(right, receive_all, receiver) == list(range(50))
    assert done.result(WAIT) is None


@every_pair
@every_capacity
def test_a_call_goes_there_and_back(users: Users, left: str, right: str, capacity: int) -> None:
    there, questions = channel(capacity)
    answers, back = channel(capacity)

    async def ask(words: Any) -> list[int]:
        got = []
        for number in range(20):
            await words.send(there, number)
            got.append(await words.receive(back))
        there.close()
        return got

    async def answer(words: Any) -> None:
        async for number in words.values(questions):
            await words.send(answers, -number)

    done = users.start(right, answer)
    assert users.run(left, ask) == [-number for number in range(20)]
    assert done.result(WAIT) is None


@every_kind
@pytest.mark.parametrize("capacity", [1, 3, 16])
def test_a_send_with_room_needs_no_partner(users: Users, kind: str, capacity: int) -> None:
    sender, receiver = channel(capacity)

    async def fill(words: Any) -> None:
        assert (len(sender), sender.capacity) == (0, capacity)
        for number in range(capacity):
            if number % 2:
                assert sender.send_nowait(number)
            else:
                await words.send(sender, number)
        assert len(sender) == capacity
        assert not sender.send_nowait("too many")
        with pytest.raises(ChannelTimeout):
            await words.send(sender, "too many", 0)
        sender.close()
        assert sender._is_closed

    async def empty(words: Any) -> None:
        assert (len(receiver), receiver.capacity) == (capacity, capacity)
        assert receiver.peek() == 0
        assert receiver.receive_nowait() == 0
        rest = list(range(1, capacity))
        if rest:
            assert await words.receive_many(receiver, capacity + 5) == rest
        assert receiver._is_closed
        with pytest.raises(ChannelClosed):
            receiver.receive_nowait()
        with pytest.raises(ChannelClosed):
            receiver.peek()
        with pytest.raises(ChannelClosed):
            await words.receive(receiver)
        with pytest.raises(ChannelClosed):
            await words.receive_many(receiver, 3)

    users.run(kind, fill)
    users.run(kind, empty)


@every_kind
@every_capacity
def test_an_empty_channel_has_nothing(users: Users, kind: str, capacity: int) -> None:
    sender, receiver = channel(capacity)

    async def look(words: Any) -> None:
        assert not receiver._is_closed
        assert not sender._is_closed
        assert receiver.receive_nowait("nothing") == "nothing"
        assert receiver.receive_nowait(None) is None
        with pytest.raises(ChannelEmpty):
            receiver.receive_nowait()
        with pytest.raises(ChannelEmpty):
            receiver.peek()
        with pytest.raises(ChannelTimeout):
            await words.receive(receiver, 0)
        with pytest.raises(TimeoutError):
            await words.ready(Selection([receiver]), 0)

    users.run(kind, look)


@every_kind
def test_receive_many_takes_at_most_its_limit(users: Users, kind: str) -> None:
    sender, receiver = channel(16)
    for number in range(10):
        assert sender.send_nowait(number)

    async def take(words: Any) -> list[list[int]]:
        return [await words.receive_many(receiver, most) for most in (1, 4, 16)]

    assert users.run(kind, take) == [[0], [1, 2, 3, 4], [5, 6, 7, 8, 9]]


@every_pair
def test_at_capacity_0_send_waits_until_it_is_received(users: Users, left: str, right: str) -> None:
    sender, receiver = channel(0)
    notes: list[str] = []

    async def send(words: Any) -> None:
        await words.send(sender, "value")
        notes.append("sent")

    async def receive(words: Any) -> None:
        await words.ready(Selection([receiver]))
        notes.append("ready")
        assert (await words.receive(receiver), len(receiver)) == ("value", 0)

    done = users.start(left, send)
    users.run(right, receive)
    done.result(WAIT)
    assert notes == ["ready", "sent"]


@every_kind
def test_at_capacity_0_send_nowait_wants_a_receiver_that_waits(users: Users, kind: str) -> None:
    sender, receiver = channel(0)
    assert not sender.send_nowait("nobody waits")

    async def receive(words: Any) -> Any:
        return await words.receive(receiver)

    done = users.start(kind, receive)
    selection = Selection([sender])
    assert selection.wait(WAIT) is sender
    assert sender.send_nowait("value")
    assert done.result(WAIT) == "value"


@every_pair
@every_capacity
def test_a_released_end_still_works(users: Users, left: str, right: str, capacity: int) -> None:
    sender, receiver = channel(capacity)

    async def send_one(words: Any, value: int) -> None:
        await words.send(sender, value)
        assert sender.release() is sender

    async def receive_one(words: Any) -> Any:
        value = await words.receive(receiver)
        assert receiver.release() is receiver
        return value

    for number, (one, other) in enumerate([(left, right), (right, left), (left, left)]):
        done = users.start(one, send_one, number)
        assert users.run(other, receive_one) == number
        done.result(WAIT)


@every_kind
@every_capacity
def test_clones_of_a_sender_share_a_channel(users: Users, kind: str, capacity: int) -> None:
    sender, receiver = channel(capacity)

    async def send_all_of(words: Any, sender: Sender[Any], name: int) -> None:
        for number in range(20):
            await words.send(sender, (name, number))
        sender.close()

    done = [users.start(kind, send_all_of, sender.clone(), name) for name in range(3)]
    sender.close()
    values = list(receiver)
    for one in done:
        one.result(WAIT)
    assert sorted(values) == [(name, number) for name in range(3) for number in range(20)]
    for name in range(3):
        assert [number for one, number in values if one == name] == list(range(20))


@every_kind
@every_capacity
def test_each_value_goes_to_one_receiver_clone(users: Users, kind: str, capacity: int) -> None:
    sender, receiver = channel(capacity)
    done = [users.start(kind, receive_all, receiver.clone()) for _ in range(3)]
    receiver.close()
    for number in range(60):
        sender.put(number, WAIT)
    sender.close()
    parts = [one.result(WAIT) for one in done]
    assert sorted(itertools.chain(*parts)) == list(range(60))
    for part in parts:
        assert part == sorted(part)


@every_kind
@every_capacity
def test_a_sender_goes_on_in_the_channel_of_another(users: Users, kind: str, capacity: int) -> None:
    first, old = channel(capacity)
    second, new = channel(capacity)

    async def send(words: Any) -> None:
        await words.send(first, "in the old")
        first.replace(second)
        await words.send(first, "in the new")
        first.close()

    done = users.start(kind, send)
    assert list(old) == ["in the old"]
    assert list(new) == ["in the new"]
    done.result(WAIT)


@every_kind
@every_capacity
def test_a_replaced_receiver_takes_the_rest_and_then_the_next_channel(
    users: Users, kind: str, capacity: int
) -> None:
    old, first = channel(capacity)
    new, second = channel(capacity)
    newest, third = channel(capacity)
    second.replace(third)
    second.release()

    async def receive(words: Any) -> list[Any]:
        first.replace(second)
        return await receive_all(words, first)

    done = users.start(kind, receive)
    for sender, value in ((old, "old"), (new, "new"), (newest, "newest")):
        sender.put(value, WAIT)
        sender.close()
    assert done.result(WAIT) == ["old", "new", "newest"]


@every_kind
def test_a_sender_is_a_context_manager(users: Users, kind: str) -> None:
    sender, receiver = channel(3)

    async def send(words: Any) -> None:
        with sender as same:
            assert same is sender
            await words.send(sender, 1)

    users.run(kind, send)
    assert list(receiver) == [1]
