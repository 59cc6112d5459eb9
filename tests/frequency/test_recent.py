"""Counting within a window of panes."""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.frequency import RecentSpaceSaving, SpaceSaving
from tests.frequency.test_bounds import KEYS, hold


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.sampled_from([0.5, 0.1, 0.01]), st.integers(1, 4), st.lists(KEYS, max_size=8))
def test_the_panes_of_the_window_count_and_no_others(
    epsilon: float, panes: int, batches: list[list[Hashable]]
) -> None:
    recent = RecentSpaceSaving(epsilon, panes=panes)
    for index, batch in enumerate(batches):
        if index:
            recent.rotate()
        recent.update(batch)
        exact: Counter[Any] = Counter()
        for counted in batches[max(0, index - panes + 1) : index + 1]:
            exact.update(counted)
        hold(recent.summary(), exact, adds_up=False)
        assert recent.total == sum(exact.values())


def test_panes_end_by_the_clock() -> None:
    clock = Clock()
    recent = RecentSpaceSaving(0.1, panes=3, seconds=10, clock=clock)
    recent.add("a")
    clock.now += 9.9
    recent.add("a")
    clock.now += 0.1
    recent.add("b", 5)
    assert recent.top(2) == [("b", 5, 0), ("a", 2, 0)]
    assert recent.frequent(0.5).guaranteed == [("b", 5, 0)]
    clock.now += 10
    assert recent.total == 7
    clock.now += 10
    assert recent.top(2) == [("b", 5, 0)]
    assert recent.estimate("a") == ("a", 0, 0)
    clock.now += 10
    assert recent.total == 0


def test_a_long_pause_empties_the_window_at_once() -> None:
    clock = Clock()
    recent = RecentSpaceSaving(0.1, panes=2, seconds=0.001, clock=clock)
    recent.update("ab")
    clock.now += 1e9
    assert recent.total == 0
    recent.add("c")
    assert recent.top(1) == [("c", 1, 0)]


def test_one_pane_is_a_window_that_is_emptied() -> None:
    recent = RecentSpaceSaving(0.1, panes=1)
    recent.update(["a", "b"])
    recent.rotate()
    recent.update(["c"])
    assert [each.key for each in recent.top(5)] == ["c"]


def test_a_summary_is_the_callers() -> None:
    recent = RecentSpaceSaving(0.1, panes=3)
    recent.add("a")
    recent.rotate()
    recent.summary().add("b")
    assert recent.top(5) == [("a", 1, 0)]


def test_an_interrupted_merge_leaves_no_part_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(SpaceSaving):
        merges = 0

        def merge(self, other: SpaceSaving) -> None:
            Interrupted.merges += 1
            if Interrupted.merges == 2:
                raise KeyboardInterrupt
            super().merge(other)

    monkeypatch.setattr("callboard.frequency.recent.SpaceSaving", Interrupted)
    recent = RecentSpaceSaving(0.1, panes=3)
    for key in "abc":
        recent.add(key)
        recent.rotate()
    with pytest.raises(KeyboardInterrupt):
        recent.summary()
    assert [each.key for each in recent.top(5)] == ["b", "c"]


def test_a_count_while_a_pane_ends_ends_no_other_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(epsilon: float) -> SpaceSaving:
        if made:  # a signal handler, just before the pane that fills is there
            made.pop().add("meanwhile")
        return SpaceSaving(epsilon)

    made: list[RecentSpaceSaving] = []
    monkeypatch.setattr("callboard.frequency.recent.SpaceSaving", interrupted)
    clock = Clock()
    recent = RecentSpaceSaving(0.1, panes=2, seconds=10, clock=clock)
    recent.add("a")
    made.append(recent)
    clock.now += 10
    recent.add("b")
    assert not made
    assert sorted(each.key for each in recent.top(5)) == ["a", "b", "meanwhile"]
    clock.now += 10
    assert [each.key for each in recent.top(5)] == ["b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"panes": 0}, "panes must be a whole number from 1 to 10000, got 0"),
        ({"panes": 2.5}, "panes must be a whole number from 1 to 10000, got 2.5"),
        (
            {"panes": 2, "seconds": 0},
            "a pane must be a number of seconds above 0 and at most 1e9, got 0",
        ),
        ({"panes": 2, "seconds": float("nan")}, "a pane must be a number of seconds above 0"),
        ({"panes": 2, "epsilon": 2}, "epsilon expects a number from 1e-9 to below 1, got 2"),
        ({"panes": 2, "seconds": 1, "clock": lambda: float("inf")}, "expected finite seconds"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecentSpaceSaving(**{"epsilon": 0.1, **options})
