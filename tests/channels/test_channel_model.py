"""One channel with clones, against a plain list of values."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from callboard.channels import (
    ChannelCancelled,
    ChannelClosed,
    ChannelEmpty,
    Receiver,
    Sender,
    channel,
)


class ChannelMachine(RuleBasedStateMachine):
    """Senders and receivers that are closed leave the bundles."""

    senders = Bundle("senders")
    receivers = Bundle("receivers")

    def __init__(self) -> None:
        super().__init__()
        self.values: deque[int] = deque()
        self.open_senders = self.open_receivers = 1
        self.is_cancelled = False
        self.number = 0

    @initialize(target=senders, capacity=st.integers(1, 4))
    def make(self, capacity: int) -> Any:
        self.capacity = capacity
        self.sender, self.receiver = channel(capacity)
        self.first_sender, self.first_receiver = self.sender, self.receiver
        self.waiting_receivers = [self.receiver]
        return multiple(self.sender)

    @rule(target=receivers)
    def give_receiver(self) -> Any:
        return multiple(*(self.waiting_receivers.pop() for _ in self.waiting_receivers[:1]))

    def expected_end(self) -> type[ChannelClosed] | None:
        if self.is_cancelled:
            return ChannelCancelled
        return None if self.open_senders and self.open_receivers else ChannelClosed

    @rule(sender=senders)
    def send_nowait(self, sender: Sender[int]) -> None:
        self.number += 1
        if (error := self.expected_end()) is not None:
            with pytest.raises(ChannelClosed) as caught:
                sender.send_nowait(self.number)
            assert type(caught.value) is error
            return
        had_room = len(self.values) < self.capacity
        assert sender.send_nowait(self.number) is had_room
        if had_room:
            self.values.append(self.number)

    @rule(sender=senders)
    def put_at_once(self, sender: Sender[int]) -> None:
        self.number += 1
        try:
            sender.put(self.number, timeout=0)
        except TimeoutError:
            assert self.expected_end() is None
            assert len(self.values) == self.capacity
        except ChannelClosed as error:
            assert type(error) is self.expected_end()  # noqa: PT017
        else:
            assert self.expected_end() is None
            self.values.append(self.number)
            assert len(self.values) <= self.capacity

    def check_nothing(self, take: Any) -> None:
        with pytest.raises((ChannelClosed, ChannelEmpty)) as caught:
            take()
        assert type(caught.value) is (self.expected_end() or ChannelEmpty)

    @rule(receiver=receivers)
    def receive_nowait(self, receiver: Receiver[int]) -> None:
        if self.values:
            assert receiver.peek() == self.values[0]
            assert receiver.receive_nowait() == self.values.popleft()
        else:
            self.check_nothing(receiver.peek)
            self.check_nothing(receiver.receive_nowait)

    @rule(receiver=receivers, most=st.integers(1, 6))
    def get_many(self, receiver: Receiver[int], most: int) -> None:
        try:
            values = receiver.get_many(most, timeout=0)
        except TimeoutError:
            assert not self.values
            assert self.expected_end() is None
        except ChannelClosed as error:
            assert not self.values
            assert type(error) is self.expected_end()  # noqa: PT017
        else:
            expected = min(most, len(self.values))
            assert values == [self.values.popleft() for _ in range(expected)]

    @rule(target=senders, sender=senders)
    def clone_sender(self, sender: Sender[int]) -> Any:
        if self.expected_end() is not None:
            with pytest.raises(ChannelClosed):
                sender.clone()
            return multiple()
        self.open_senders += 1
        return sender.clone()

    @rule(target=receivers, receiver=receivers)
    def clone_receiver(self, receiver: Receiver[int]) -> Any:
        if self.is_cancelled:
            return multiple()
        self.open_receivers += 1
        return receiver.clone()

    @rule(sender=consumes(senders))
    def close_sender(self, sender: Sender[int]) -> None:
        sender.close()
        if not self.is_cancelled:
            self.open_senders -= 1
        with pytest.raises(ChannelClosed):
            sender.send_nowait(0)

    @rule(receiver=consumes(receivers))
    def close_receiver(self, receiver: Receiver[int]) -> None:
        if self.open_receivers == 1:
            return  # what is left then depends on when it is collected: see test_collection.py
        receiver.close()
        if not self.is_cancelled:
            self.open_receivers -= 1

    @rule(end=st.one_of(senders, receivers), really=st.integers(0, 9))
    def cancel(self, end: Any, really: int) -> None:
        if really == 0:
            end.cancel()
            self.is_cancelled = True
            self.values.clear()

    @invariant()
    def sizes_agree(self) -> None:
        if hasattr(self, "capacity"):
            assert len(self.first_sender) == len(self.first_receiver) == len(self.values)
            assert self.first_sender.capacity == self.capacity


TestChannel = ChannelMachine.TestCase
