"""Conservation while threads use the clones of one channel at once, with time limits."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from callboard.channels import ChannelClosed, ChannelTimeout, Receiver, Sender, channel
from tests.channels.users import WAIT, in_thread

COUNT = 100
LIMITS = [None, 0, 0.0001]


def send_all(sender: Sender[Any], name: int) -> list[Any]:
    """Return the values that are the sender's still."""
    kept = []
    choose = random.Random(name).choice
    for number in range(COUNT):
        try:
            sender.put((name, number), choose(LIMITS))
        except ChannelTimeout:
            kept.append((name, number))
    sender.close()
    return kept


def receive_all(receiver: Receiver[Any], name: int) -> list[Any]:
    values = []
    choose = random.Random(name).choice
    while True:
        try:
            values.append(receiver.get(choose(LIMITS)))
        except ChannelTimeout:
            continue
        except ChannelClosed:
            return values


@pytest.mark.parametrize("capacity", [0, 1, 2])
@pytest.mark.parametrize("turn", range(3))
def test_each_value_is_received_or_kept(capacity: int, turn: int) -> None:
    sender, receiver = channel(capacity)
    names = range(3 * turn, 3 * turn + 3)
    ends = [(name, sender.clone(), receiver.clone()) for name in names]
    sender.close()
    receiver.close()
    takers = [in_thread(partial(receive_all, r, name)) for name, _, r in ends]
    makers = [in_thread(partial(send_all, s, name)) for name, s, _ in ends]
    values = [value for one in makers + takers for value in one.result(WAIT)]
    assert sorted(values) == [(name, number) for name in names for number in range(COUNT)]
