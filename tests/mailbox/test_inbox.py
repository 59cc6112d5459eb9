"""Inboxes of a group of processes: random programs against a model, waits, ends and successors."""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from callboard.mailbox.shared.inbox import MOST_PROCESSES, Inbox, memory_size

CAPACITY = 256
NUMBERS = st.integers(0, 3)
LENGTHS = st.sampled_from([1, 2, 30, 64, 65, 300, 1000])


class Group:
    """The memory and the eventfds of a group of processes, whose inboxes are all in this one."""

    def __init__(self, processes: int) -> None:
        self.size = memory_size(processes, CAPACITY)
        self.memory = os.memfd_create("test")
        os.ftruncate(self.memory, self.size)
        self.descriptors = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(processes)]

    def open(self, own: int) -> Inbox:
        return Inbox(self.memory, own, CAPACITY, self.descriptors)

    def close(self) -> None:
        for descriptor in (self.memory, *self.descriptors):
            os.close(descriptor)


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group(3)
    yield made
    made.close()


def receive(inbox: Inbox) -> tuple[int, bytes]:
    while True:
        looked = inbox.look()
        if (received := inbox.receive()) is not None:
            return received
        inbox.wait(looked, milliseconds=60_000)


def send(inbox: Inbox, process: int, message: bytes) -> None:
    sent = 0
    while True:
        looked = inbox.look()
        if (sent := inbox.send(process, message, sent)) == len(message):
            return
        inbox.wait(looked, milliseconds=60_000)


class Unfinished:
    """A message of which the first bytes are sent."""

    def __init__(self, message: bytes, sent: int) -> None:
        self.message = message
        self.sent = sent


class InboxMachine(RuleBasedStateMachine):
    """Processes that send, receive, end, and have successors. Each message comes once, in order.

    The model has a queue for each two processes, and the message that a process is sending.
    """

    @initialize(processes=st.integers(2, 4))
    def begin(self, processes: int) -> None:
        self.group = Group(processes)
        self.inboxes = [self.group.open(own) for own in range(processes)]
        pairs = [(a, b) for a in range(processes) for b in range(processes) if a != b]
        self.whole: dict[tuple[int, int], deque[bytes]] = {pair: deque() for pair in pairs}
        self.unfinished: dict[tuple[int, int], Unfinished] = {}
        self.count = 0

    def pair(self, one: int, other: int) -> tuple[int, int]:
        processes = len(self.inboxes)
        return one % processes, (one + 1 + other % (processes - 1)) % processes

    @rule(one=NUMBERS, other=NUMBERS, length=LENGTHS)
    def send(self, one: int, other: int, length: int) -> None:
        pair = self.pair(one, other)
        if pair in self.unfinished:
            now = self.unfinished[pair]
        else:
            self.count += 1
            now = Unfinished(str(self.count).encode().ljust(length, b"."), 0)
        total = self.inboxes[pair[0]].send(pair[1], now.message, now.sent)
        assert now.sent <= total <= len(now.message)
        if total == len(now.message):
            self.unfinished.pop(pair, None)
            self.whole[pair].append(now.message)
        elif total > 0:
            self.unfinished[pair] = Unfinished(now.message, total)

    @rule(number=NUMBERS)
    def receive(self, number: int) -> None:
        own = number % len(self.inboxes)
        received = self.inboxes[own].receive()
        if received is None:
            assert not any(queue for pair, queue in self.whole.items() if pair[1] == own)
        else:
            sender, message = received
            assert message == self.whole[sender, own].popleft()

    @rule(number=NUMBERS)
    def end(self, number: int) -> None:
        """End a process, whose successor takes its place."""
        own = number % len(self.inboxes)
        del self.inboxes[own]
        for pair in [pair for pair in self.unfinished if pair[0] == own]:
            del self.unfinished[pair]
        self.inboxes.insert(own, None)  # type: ignore[arg-type]
        for other, inbox in enumerate(self.inboxes):
            if other == own:
                continue
            back = inbox.take_back(own)
            if back[:1] == [b""]:  # it had received the beginning of a long message
                lost = self.whole[other, own].popleft()
                assert len(lost) > CAPACITY // 4
                del back[0]
            assert back == [*self.whole[other, own]]
            self.whole[other, own].clear()
            self.unfinished.pop((other, own), None)
        self.inboxes[own] = self.group.open(own)

    @precondition(lambda self: hasattr(self, "inboxes"))
    @invariant()
    def no_ring_is_broken(self) -> None:
        for pair in self.whole:
            assert not self.inboxes[pair[0]].is_broken(pair[1])

    def teardown(self) -> None:
        if not hasattr(self, "group"):
            return
        while self.unfinished:
            for own in range(len(self.inboxes)):
                while any(queue for pair, queue in self.whole.items() if pair[1] == own):
                    self.receive(own)
                assert self.inboxes[own].receive() is None
            for pair in [*self.unfinished]:
                self.send(pair[0], (pair[1] - pair[0] - 1) % len(self.inboxes), 1)
        for own in range(len(self.inboxes)):
            while any(queue for pair, queue in self.whole.items() if pair[1] == own):
                self.receive(own)
            assert self.inboxes[own].receive() is None
        self.group.close()


TestInboxes = InboxMachine.TestCase


def test_processes_that_wait_for_messages_and_room_lose_nothing(group: Group) -> None:
    messages = [bytes([at]) * (1 + at * 7 % 400) for at in range(200)]
    inboxes = [group.open(own) for own in range(3)]
    came: dict[int, list[bytes]] = {1: [], 2: []}

    def send_all(own: int) -> None:
        for message in messages:
            send(inboxes[own], 0, message)

    threads = [threading.Thread(target=send_all, args=(own,)) for own in (1, 2)]
    for thread in threads:
        thread.start()
    for _ in range(2 * len(messages)):
        sender, message = receive(inboxes[0])
        came[sender].append(message)
    for thread in threads:
        thread.join()
    assert came == {1: messages, 2: messages}


def test_a_wait_ends_by_a_wake_and_by_another_descriptor(group: Group) -> None:
    first, second = group.open(0), group.open(1)
    second.wake(0)
    first.wait(first.look(), milliseconds=60_000)
    reading, writing = os.pipe()
    os.close(writing)
    first.wait(first.look(), reading, 60_000)
    os.close(reading)


def test_a_process_that_is_killed_leaves_whole_messages_and_has_a_successor(group: Group) -> None:
    first = group.open(0)
    for life in range(20):
        child = os.fork()
        if child == 0:
            try:
                inbox = group.open(1)
                for number in range(1_000_000):
                    send(inbox, 0, f"{life} {number} ".encode() * 20)
            finally:
                os._exit(1)
        for number in range(1 + life):
            assert receive(first) == (1, f"{life} {number} ".encode() * 20)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        number = 1 + life
        while (left := first.receive()) is not None:
            assert left == (1, f"{life} {number} ".encode() * 20)
            number += 1
        assert first.take_back(1) == []


def test_nonsense_of_a_process_breaks_its_rings_until_it_is_replaced(group: Group) -> None:
    first, second, third = (group.open(own) for own in range(3))
    second.send(0, b"lost")
    third.send(0, b"kept")
    first.mark_broken(1)
    assert first.receive() == (2, b"kept")
    assert first.receive() is None
    assert first.is_broken(1)
    assert not first.is_broken(2)
    assert first.take_back(1) == []
    assert not first.is_broken(1)
    second = group.open(1)
    second.send(0, b"next")
    assert first.receive() == (1, b"next")


@pytest.mark.parametrize("byte", [1, 8, 255])
def test_memory_full_of_nonsense_stops_no_process(group: Group, byte: int) -> None:
    inboxes = [group.open(own) for own in range(3)]
    inboxes[0].send(1, b"a")
    with mmap.mmap(group.memory, group.size) as memory:
        memory[:] = bytes([byte]) * group.size
    for own, inbox in enumerate(inboxes):
        assert inbox.receive() is None
        for other in range(3):
            if other != own:
                inbox.send(other, bytes(2 * CAPACITY))
                assert inbox.is_broken(other)
        inbox.wait(inbox.look(), milliseconds=1)


def test_a_fork_cannot_use_the_inbox_of_its_parent(group: Group) -> None:
    first, second = group.open(0), group.open(1)
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (
            lambda: first.send(1, b"from the fork"),
            second.receive,
            first.look,
            lambda: first.wait(0),
            lambda: first.take_back(1),
            lambda: first.is_broken(1),
        ):
            try:
                use()
            except RuntimeError:
                refused += 1
        first.wake(1)
        del first, second
        os._exit(6 - refused)
    assert os.waitpid(child, 0)[1] == 0
    first.send(1, b"from the parent")
    assert second.receive() == (0, b"from the parent")


def test_wrong_arguments_are_refused(group: Group) -> None:
    inbox = group.open(0)
    for message, sent in ((b"", 0), (b"abc", 4)):
        with pytest.raises(ValueError, match="expected a message"):
            inbox.send(1, message, sent)
    for number in (0, 3):
        with pytest.raises(ValueError, match=f"another of 3 processes, got {number}"):
            inbox.send(number, b"a")
        with pytest.raises(ValueError, match=f"another of 3 processes, got {number}"):
            inbox.take_back(number)
    with pytest.raises(ValueError, match="one of 3 processes, got 3"):
        inbox.wake(3)
    with pytest.raises(ValueError, match="one of 3 processes, got 3"):
        group.open(3)
    with pytest.raises(ValueError, match="power of two of at least 64, got 100"):
        Inbox(group.memory, 0, 100, group.descriptors)
    for processes in (1, MOST_PROCESSES + 1):
        with pytest.raises(ValueError, match=f"expected 2 to 64 processes, got {processes}"):
            memory_size(processes, CAPACITY)
    with pytest.raises(OSError, match="cannot be mapped"):
        Inbox(-1, 0, CAPACITY, group.descriptors)
