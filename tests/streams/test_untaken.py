"""Outputs in a collector while lanes append, takers take and senders wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard.streams.running.untaken import Untaken
from tests.streams.taking import Thread


class Growing(list[Any]):
    """A list to which a lane appends as soon as somebody has copied it."""

    def __getitem__(self, where: Any) -> Any:
        rows = super().__getitem__(where)
        self.append(len(self))
        return rows


def test_rows_appended_during_a_take_are_not_lost() -> None:
    untaken = Untaken("all", Growing([0, 1]), None)
    assert untaken.take_all() == [0, 1]
    assert len(untaken) == 1
    assert [untaken.take_one(), untaken.take_one()] == [2, 1]


def test_a_count_during_a_take_misses_none() -> None:
    seen = []

    class Watched(list[Any]):
        def __delitem__(self, where: Any) -> None:
            seen.append(len(untaken))
            super().__delitem__(where)
            seen.append(len(untaken))

    untaken = Untaken("all", Watched(range(4)), 4)
    assert untaken.take_one() == 0
    assert len(seen) == 2
    assert min(seen) >= 4
    assert len(untaken) == 3


def test_a_take_during_a_count_misses_none() -> None:
    class Counted(list[Any]):
        def __len__(self) -> int:
            taken.append(untaken.take_one())
            return super().__len__()

    taken: list[Any] = []
    untaken = Untaken("all", Counted(range(4)), 4)
    assert len(untaken) == 3
    assert taken == [0]


def test_a_waiting_sender_is_woken_by_a_take_from_the_hand() -> None:
    untaken = Untaken("all", list(range(8)), 8)
    waiting = Thread(lambda: untaken.wait_for_taker(3600.0))
    taken = [untaken.hand.pop() if untaken.hand else untaken.take_one() for _ in range(5)]
    waiting.ends()
    assert taken == list(range(5))
    assert untaken.rows() == [5, 6, 7]


def test_closed_results_are_never_full() -> None:
    untaken = Untaken("all", list(range(8)), 8)
    untaken.unbind()
    assert not untaken.is_full()
    assert untaken.has_room()
    assert untaken.take_one() == 0


@pytest.mark.parametrize("take", [Untaken.take_all, Untaken.take_one, Untaken.unbind])
def test_a_take_wakes_a_sender_that_waits(take: Callable[[Untaken[int]], object]) -> None:
    untaken = Untaken("all", [1], 1)
    waiting = Thread(lambda: untaken.wait_for_taker(3600.0))
    assert not untaken.has_room()
    take(untaken)
    assert untaken.has_room()
    waiting.ends()


def test_a_waiting_sender_goes_on_at_half_of_the_room() -> None:
    untaken = Untaken("all", list(range(4)), 4)
    assert untaken.is_full()
    taken = []
    while not untaken.has_room():
        taken.append(untaken.take_one())
    assert taken == [0, 1]
