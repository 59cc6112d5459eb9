"""Keys are equal as Python's are, however they are kept."""

import gc
from collections.abc import Hashable
from enum import IntEnum

import pytest

from callboard.frequency import Counted, SpaceSaving


class Color(IntEnum):
    """Equal to its number."""

    RED = 1


class Loud(str):
    """A text that is one of Python's own by its methods only."""

    __slots__ = ()


OTHER_WORDS_FOR_ONE: list[Hashable] = [1, 1.0, True, Color.RED, 1 + 0j]


@pytest.mark.parametrize("first", OTHER_WORDS_FOR_ONE)
@pytest.mark.parametrize("second", OTHER_WORDS_FOR_ONE)
def test_equal_numbers_are_one_key(first: Hashable, second: Hashable) -> None:
    summary = SpaceSaving(0.1)
    summary.add(first)
    assert summary.estimate(second) == Counted(second, 1, 0)
    summary.add(second)
    assert list(summary) == [Counted(1, 2, 0)]


def test_values_that_are_never_equal_are_told_apart() -> None:
    keys: list[Hashable] = [
        1,
        "1",
        b"1",
        (1,),
        ("1",),
        (b"1",),
        ((1,),),
        (1, 1),
        "",
        b"",
        (),
        ((),),
        "1\0",
        "\0",
    ]
    summary = SpaceSaving(0.01)
    summary.update(keys)
    summary.update(keys)
    assert [each.key for each in summary] == keys
    assert {each.count for each in summary} == {2}
    assert [type(each.key) for each in summary] == [type(key) for key in keys]


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        2**63 - 1,
        -(2**63),
        2**63,
        -(2**63) - 1,
        10**40,
        "ä漢😀",
        "\ud800",
        b"\xff\0",
        ("a", (2, b"c")),
        0.5,
        None,
        frozenset({1}),
        ("a", 1.5),
        ("a", None),
        Loud("x"),
        Color.RED,
        "x" * 100_000,
        (1,) * 1000,
    ],
)
def test_a_key_comes_back_as_it_was(key: Hashable) -> None:
    for before in ([], [7], ["seven"], [7.5]):
        summary = SpaceSaving(0.1)
        summary.update(before)
        summary.add(key, 3)
        [(back, count, error)] = summary.top(1)
        assert (back, count, error) == (key, 3, 0)
        assert type(back) is type(key)
        assert [each.key for each in summary] == [key, *before]


def test_tuples_in_tuples_are_keys_however_deep() -> None:
    key: Hashable = ()
    for _ in range(200):
        key = (key,)
    summary = SpaceSaving(0.1)
    summary.add(key)
    summary.add((key,))
    assert summary.estimate(key) == Counted(key, 1, 0)


def test_keeping_keys_in_another_way_keeps_counts_and_errors() -> None:
    summary = SpaceSaving(0.5)
    summary.update([1, 1, 2, 3])
    before = set(summary)
    for key in ("a", 1.5):
        summary.add(key, 0)
        assert set(summary) == before
        assert summary.total == 4
    summary.add(None)
    assert (
        set(summary) == {Counted(None, 3, 2), *(each for each in before if each.key == 1)}
        or len(summary) == 2
    )


def test_objects_are_let_go_with_their_counters() -> None:
    alive = []

    class Mortal:
        def __init__(self) -> None:
            alive.append(id(self))

        def __del__(self) -> None:
            alive.remove(id(self))

    summary = SpaceSaving(0.25)
    for _ in range(50):
        summary.add(Mortal())
    assert len(alive) == 4
    del summary
    assert alive == []


def test_a_key_may_come_from_a_summary_in_its_own_end() -> None:
    summary = SpaceSaving(0.5)

    class Heir:
        def __del__(self) -> None:
            summary.add("heir")

    for _ in range(4):
        summary.add(Heir())
    summary.update(["a", "b"])
    assert summary.total >= 6


class Rude:
    """Compares with an error, or with the help of the summary that it is in."""

    def __init__(self, summary: SpaceSaving | None = None) -> None:
        self.summary = summary

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        if self.summary is None:
            raise LookupError("not to be compared")
        return bool(self.summary.total)


def test_a_failing_comparison_counts_nothing() -> None:
    summary = SpaceSaving(0.1)
    summary.add(Rude())
    before = list(summary)
    with pytest.raises(LookupError, match="not to be compared"):
        summary.add(Rude())
    with pytest.raises(LookupError, match="not to be compared"):
        summary.estimate(Rude())
    assert list(summary) == before
    assert summary.total == 1


def test_a_comparison_that_uses_the_summary_is_refused() -> None:
    summary = SpaceSaving(0.1)
    summary.add(Rude(summary))
    with pytest.raises(RuntimeError, match="this thread is using the summary"):
        summary.add(Rude(summary))
    assert summary.total == 1


def test_keys_of_a_comparison_or_a_finalizer_are_counted_when_the_summary_is_free() -> None:
    summary = SpaceSaving(0.01)

    class Counting:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            summary.add("compared", 2)
            summary.update(["compared", "more"])
            return self is other

    summary.add(Counting())
    summary.add(Counting())
    assert summary.estimate("compared") == Counted("compared", 3, 0)
    assert summary.estimate("more") == Counted("more", 1, 0)
    assert summary.total == 6


def test_keys_are_counted_by_finalizers_during_a_query() -> None:
    summary = SpaceSaving(1e-4)
    summary.update(f"key {number}" for number in range(5000))

    class Loop:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            summary.add("closed")

    for _ in range(50):
        Loop()
        list(summary)
    gc.collect()
    assert summary.estimate("closed") == Counted("closed", 50, 0)


def test_a_merge_that_fails_changes_nothing() -> None:
    calls = 0

    class Failing:
        def __hash__(self) -> int:
            nonlocal calls
            calls += 1
            if fails and calls > 1:
                raise LookupError("no hash")
            return 1

    fails = False
    summary, other = SpaceSaving(0.1), SpaceSaving(0.1)
    summary.update(["a", "b", "b"])
    other.add(Failing())
    fails, calls = True, 0
    with pytest.raises(LookupError, match="no hash"):
        summary.merge(other)
    assert set(summary) == {Counted("a", 1, 0), Counted("b", 2, 0)}
    assert summary.total == 3
