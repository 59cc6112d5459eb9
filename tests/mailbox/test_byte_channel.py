"""Channels between two processes: messages of any length, waits, and memory full of nonsense."""

from __future__ import annotations

import mmap
import os
import select
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.mailbox.shared.byte_channel import ByteChannel, memory_size

CAPACITY = 1024


class Pair:
    """Both ends of a channel, each with a mapping of its own, and the memory."""

    def __init__(self) -> None:
        size = memory_size(CAPACITY)
        memory = os.memfd_create("test")
        os.ftruncate(memory, size)
        self.descriptors = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
        own, other = self.descriptors
        self.first = ByteChannel(memory, CAPACITY, own, other, True)
        self.second = ByteChannel(memory, CAPACITY, other, own, False)
        self.memory = mmap.mmap(memory, size)
        os.close(memory)

    def close(self) -> None:
        del self.first, self.second
        self.memory.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def receive(channel: ByteChannel) -> bytes:
    while True:
        looked = channel.look()
        if (message := channel.receive()) is not None:
            return message
        channel.wait(looked, milliseconds=60_000)


def send(channel: ByteChannel, message: bytes) -> None:
    sent = 0
    while True:
        looked = channel.look()
        if (sent := channel.send(message, sent)) == len(message):
            return
        channel.wait(looked, milliseconds=60_000)


def test_messages_pass_both_ways_in_order(pair: Pair) -> None:
    for channel, other in ((pair.first, pair.second), (pair.second, pair.first)):
        for message in (b"a", b"bc", bytes(100)):
            assert channel.send(message) == len(message)
        assert [other.receive() for _ in range(4)] == [b"a", b"bc", bytes(100), None]


def test_a_full_channel_takes_a_part_and_then_the_rest(pair: Pair) -> None:
    message = os.urandom(10 * CAPACITY)
    sent = pair.first.send(message)
    assert 0 < sent < CAPACITY
    while sent < len(message):
        assert pair.second.receive() is None
        more = pair.first.send(message, sent)
        assert more > sent
        sent = more
    assert pair.second.receive() == message


@given(st.lists(st.integers(1, 5000), max_size=20), st.lists(st.integers(1, 5000), max_size=20))
def test_threads_that_wait_for_each_other_lose_nothing(there: list[int], back: list[int]) -> None:
    pair = Pair()
    came: list[bytes] = []
    to_second = [bytes([at]) * size for at, size in enumerate(there)]
    to_first = [bytes([at]) * size for at, size in enumerate(back)]

    def answer() -> None:
        came.extend(receive(pair.second) for _ in to_second)
        for message in to_first:
            send(pair.second, message)

    thread = threading.Thread(target=answer)
    thread.start()
    for message in to_second:
        send(pair.first, message)
    assert [receive(pair.first) for _ in to_first] == to_first
    thread.join()
    assert came == to_second
    pair.close()


def test_a_wait_ends_by_a_wake_a_closed_pipe_and_the_time(pair: Pair) -> None:
    pair.first.wait(pair.first.look(), milliseconds=1)
    looked = pair.first.look()
    pair.first.wake()
    pair.first.wait(looked)
    reading, writing = os.pipe()
    os.close(writing)
    pair.first.wait(pair.first.look(), reading)
    os.close(reading)


@given(st.binary(min_size=1, max_size=200), st.integers(0, memory_size(CAPACITY) - 200))
def test_nonsense_in_the_memory_breaks_no_end(nonsense: bytes, at: int) -> None:
    pair = Pair()
    pair.first.send(bytes(300))
    pair.memory[at : at + len(nonsense)] = nonsense
    for channel in (pair.first, pair.second):
        while channel.receive() is not None:
            pass
        sent = channel.send(bytes(2 * CAPACITY))
        assert 0 <= sent <= 2 * CAPACITY
    pair.close()


def test_a_fork_cannot_use_the_channel_of_its_parent(pair: Pair) -> None:
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (
            lambda: pair.first.send(b"from the fork"),
            pair.second.receive,
            pair.first.look,
            lambda: pair.first.wait(0),
        ):
            try:
                use()
            except RuntimeError:
                refused += 1
        pair.first.wake()
        del pair.first, pair.second
        os._exit(4 - refused)
    assert os.waitpid(child, 0)[1] == 0
    assert pair.first.send(b"from the parent") == 15
    assert pair.second.receive() == b"from the parent"


def test_a_channel_that_is_marked_as_broken_takes_no_more_messages(pair: Pair) -> None:
    pair.first.send(b"a")
    pair.second.mark_broken()
    assert pair.second.is_broken
    assert pair.second.receive() is None


def test_wrong_arguments_are_refused(pair: Pair) -> None:
    with pytest.raises(ValueError, match="expected a message"):
        pair.first.send(b"")
    with pytest.raises(ValueError, match="expected a message"):
        pair.first.send(b"abc", 4)
    with pytest.raises(ValueError, match="power of two of at least 64, got 100"):
        ByteChannel(0, 100, 0, 0, True)
    small = os.memfd_create("small")
    for memory in (-1, small):
        with pytest.raises(OSError, match="cannot be mapped"):
            ByteChannel(memory, CAPACITY, 0, 0, True)
    os.close(small)


def has_rung(pair: Pair) -> bool:
    """Return whether the first end's sleeper is woken."""
    return bool(select.select([pair.descriptors[0]], [], [], 0)[0])


@pytest.mark.parametrize("hesitates", [False, True])
def test_a_sleeper_wakes_for_what_comes_after_a_thread_has_received(
    pair: Pair, hesitates: bool
) -> None:
    first, second = pair.first, pair.second
    first.begin_receiving()
    assert first.receive() is None
    first.end_receiving(first.look())
    assert not has_rung(pair)
    second.send(b"a", hesitates=hesitates)
    assert has_rung(pair)
    first.sleep(milliseconds=60_000)
    assert not has_rung(pair)
    assert first.receive() == b"a"


def test_a_sleeper_wakes_for_what_came_while_a_thread_received(pair: Pair) -> None:
    first, second = pair.first, pair.second
    first.begin_receiving()
    looked = first.look()
    second.send(b"a")
    assert not has_rung(pair)
    first.end_receiving(looked)
    first.sleep(milliseconds=60_000)
    assert first.receive() == b"a"


def test_a_sleeper_wakes_for_room_in_a_full_channel(pair: Pair) -> None:
    first, second = pair.first, pair.second
    message = bytes(3 * CAPACITY)
    first.begin_receiving()
    looked = first.look()
    sent = first.send(message)
    first.end_receiving(looked)
    while sent < len(message):
        assert second.receive() is None
        first.sleep(milliseconds=60_000)
        looked = first.look()
        more = first.send(message, sent)
        first.end_receiving(looked)
        assert more > sent
        sent = more
    assert second.receive() == message


def test_messages_that_find_room_wake_nobody_when_they_are_read(pair: Pair) -> None:
    first, second = pair.first, pair.second
    first.begin_receiving()
    first.end_receiving(first.look())
    for _ in range(100):
        assert first.send(b"abc") == 3
        assert second.receive() == b"abc"
    assert not has_rung(pair)


def test_a_spin_ends_with_what_the_other_end_does(pair: Pair) -> None:
    looked = pair.first.look()
    assert not pair.first.spin(looked)
    pair.second.send(b"a")
    assert pair.first.spin(looked)


def test_a_sleep_can_be_ended(pair: Pair) -> None:
    pair.first.rouse()
    pair.first.sleep(milliseconds=60_000)
    assert not has_rung(pair)
