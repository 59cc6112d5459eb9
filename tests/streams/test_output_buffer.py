"""Outputs in a collector while lanes append, takers take and senders wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard.streams.running.output_buffer import OutputBuffer
from tests.streams.taking import Thread


class Growing(list[Any]):
    """A list to which a lane appends as soon as somebody has copied it."""

    def __getitem__(self, where: Any) -> Any:
        rows = super().__getitem__(where)
        self.append(len(self))
        return rows


def test_rows_appended_during_a_take_are_not_lost() -> None:
    buffer = OutputBuffer("all", Growing([0, 1]), None)
    assert buffer.take_all() == [0, 1]
    assert len(buffer) == 1
    assert [buffer.take_one(), buffer.take_one()] == [2, 1]


def test_a_count_during_a_take_misses_none() -> None:
    seen = []

    class Watched(list[Any]):
        def __delitem__(self, where: Any) -> None:
            seen.append(len(buffer))
            super().__delitem__(where)
            seen.append(len(buffer))

    buffer = OutputBuffer("all", Watched(range(4)), 4)
    assert buffer.take_one() == 0
    assert len(seen) == 2
    assert min(seen) >= 4
    assert len(buffer) == 3


def test_a_take_during_a_count_misses_none() -> None:
    class Counted(list[Any]):
        def __len__(self) -> int:
            taken.append(buffer.take_one())
            return super().__len__()

    taken: list[Any] = []
    buffer = OutputBuffer("all", Counted(range(4)), 4)
    assert len(buffer) == 3
    assert taken == [0]


def test_a_waiting_sender_is_woken_by_a_take_from_the_hand() -> None:
    buffer = OutputBuffer("all", list(range(8)), 8)
    waiting = Thread(lambda: buffer.wait_for_taker(3600.0))
    taken = [buffer.chunk.pop() if buffer.chunk else buffer.take_one() for _ in range(5)]
    waiting.ends()
    assert taken == list(range(5))
    assert buffer.rows() == [5, 6, 7]


def test_closed_results_are_never_full() -> None:
    buffer = OutputBuffer("all", list(range(8)), 8)
    buffer.unbind()
    assert not buffer.is_full()
    assert buffer.has_room()
    assert buffer.take_one() == 0


@pytest.mark.parametrize(
    "take", [OutputBuffer.take_all, OutputBuffer.take_one, OutputBuffer.unbind]
)
def test_a_take_wakes_a_sender_that_waits(take: Callable[[OutputBuffer[int]], object]) -> None:
    buffer = OutputBuffer("all", [1], 1)
    waiting = Thread(lambda: buffer.wait_for_taker(3600.0))
    assert not buffer.has_room()
    take(buffer)
    assert buffer.has_room()
    waiting.ends()


def test_a_waiting_sender_goes_on_at_half_of_the_room() -> None:
    buffer = OutputBuffer("all", list(range(4)), 4)
    assert buffer.is_full()
    taken = []
    while not buffer.has_room():
        taken.append(buffer.take_one())
    assert taken == [0, 1]
