"""The arguments that `update` takes and refuses: one key, many, mappings, arrays."""

import math
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from callboard.frequency import Counted, SpaceSaving


def counts(keys: Any, weights: Any = None) -> dict[Hashable, int]:
    summary = SpaceSaving(0.01)
    summary.update(keys, weights)
    return {each.key: each.count for each in summary}


@pytest.mark.parametrize("key", ["checkout.html", b"abc", (1, 2), 5, None, 1.5, math])
def test_one_key_is_one_key(key: Hashable) -> None:
    assert counts(key) == {key: 1}
    assert counts(key, 4) == {key: 4}


def test_add_takes_an_iterable_as_one_key() -> None:
    summary = SpaceSaving(0.1)
    summary.add(frozenset("ab"), 2)
    assert list(summary) == [Counted(frozenset("ab"), 2, 0)]


def generator() -> Iterator[str]:
    yield from "abca"


@pytest.mark.parametrize(
    "keys",
    [
        ["a", "b", "c", "a"],
        deque("abca"),
        generator(),
        iter("abca"),
        map(str, "abca"),
        {"a": 2, "b": 1, "c": 1},
        Counter("abca"),
        OrderedDict(a=2, b=1, c=1),
        np.array(list("abca")),
        np.array(list("abca"), dtype=object),
    ],
)
def test_many_keys_are_counted_each(keys: Any) -> None:
    assert counts(keys) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("sort", ["int8", "uint8", "int16", "uint32", "int64", "uint64", ">i4"])
def test_arrays_of_integers_are(sort: str) -> None:
    keys = np.array([3, 1, 3, 100], dtype=sort)
    assert counts(keys) == {3: 2, 1: 1, 100: 1}
    assert counts(keys[::-2]) == {100: 1, 1: 1}
    assert counts(keys, [1, 2, 3, 0]) == {3: 4, 1: 2}


@pytest.mark.parametrize(
    "keys",
    [
        array("q", [3, 1, 3]),
        array("B", [3, 1, 3]),
        bytearray([3, 1, 3]),
        memoryview(bytes([3, 1, 3])),
        memoryview(array("q", [3, 0, 1, 0, 3]))[::2],
        np.array([3, 1, 3], dtype=object),
    ],
)
def test_buffers_of_integers_are(keys: Any) -> None:
    assert counts(keys) == {3: 2, 1: 1}


def test_integers_beyond_64_bits_are_keys_in_arrays_too() -> None:
    assert counts(np.array([2**64 - 1, 2**63, 5], dtype="uint64")) == {2**64 - 1: 1, 2**63: 1, 5: 1}
    assert counts(array("Q", [2**64 - 1])) == {2**64 - 1: 1}


def test_arrays_of_integers_go_to_summaries_of_other_keys() -> None:
    for other in ("a", 1.5):
        summary = SpaceSaving(0.1)
        summary.add(other)
        summary.update(np.array([7, 7]))
        assert summary.estimate(7).count == 2


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (np.array([1.0, 2.0]), "got float64"),
        (np.array([[1], [2]]), "one dimension, got 2"),
        (np.array(5), "one dimension, got 0"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "got datetime64"),
        (array("d", [1.0]), "got format 'd'"),
        (["a", ["b"]], "unhashable type: 'list'"),
        ([{}], "unhashable type: 'dict'"),
        ([1, ([],)], "unhashable type: 'list'"),
    ],
)
def test_a_value_without_keys_is_refused_and_nothing_of_it_counted(keys: Any, says: str) -> None:
    for first in (0, "a", 0.5):
        summary = SpaceSaving(0.1)
        summary.add(first)
        with pytest.raises(TypeError, match=says):
            summary.update(keys)
        assert list(summary) == [Counted(first, 1, 0)]
        assert summary.total == 1


@pytest.mark.parametrize(
    ("keys", "weights", "says"),
    [
        ("a", -1, "a weight must be a whole number of at least 0, got -1"),
        ("a", 1.5, "got 1.5"),
        (["a", "b"], [1], "expected as many weights as keys, 2, got 1"),
        (["a"], [1, 2], "expected as many weights as keys, 1, got 2"),
        (["a", "b"], [1, True], "got True"),
        ({"a": -3}, None, "got -3"),
        ({"a": "x"}, None, "got 'x'"),
        ("a", 2**63, "a weight must be a whole number"),
        (["a", "b"], [2**62, 2**62], r"counts are at most 2\*\*63 - 1"),
    ],
)
def test_bad_weights_are_refused_and_nothing_counted(keys: Any, weights: Any, says: str) -> None:
    summary = SpaceSaving(0.1)
    summary.add("z")
    with pytest.raises(ValueError, match=says):
        summary.update(keys, weights)
    assert list(summary) == [Counted("z", 1, 0)]


class NotAvailable:
    """As pandas' NA: what it is compared with is not known, and has no truth."""

    __module__ = "pandas._libs.missing"  # only types of NumPy and pandas are compared

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    def __hash__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        raise TypeError("the truth of what is not available")


def test_nan_is_no_key() -> None:
    summary = SpaceSaving(0.1)
    for keys in (
        math.nan,
        [1.5, math.nan],
        [Decimal("nan")],
        [complex("nan")],
        [np.float64("nan")],
        [(1, math.nan)],
        [("a", (Decimal("nan"), 2))],
        [np.datetime64("NaT")],
        [np.timedelta64("NaT")],
        [("a", np.datetime64("NaT"))],
        [NotAvailable()],
        [(1, NotAvailable())],
    ):
        with pytest.raises(ValueError, match="expected a key that is equal to itself, got"):
            summary.update(keys)
    assert summary.total == 0


def test_a_key_that_came_no_times_gets_no_counter() -> None:
    for key in (1, "a", 1.5):
        assert counts([key], [0]) == {}


def test_of_an_iterator_all_is_counted_before_its_error() -> None:
    def broken() -> Iterator[int]:
        yield from range(5000)
        raise LookupError("no more")

    summary = SpaceSaving(0.1)
    with pytest.raises(LookupError, match="no more"):
        summary.update(broken())
    assert summary.total == 5000


@pytest.mark.parametrize("epsilon", [0, 1, -0.1, 2, 1e-10, math.nan, math.inf, "0.1", None, True])
def test_epsilon_is_between_0_and_1(epsilon: Any) -> None:
    with pytest.raises(ValueError, match=r"epsilon (must be a finite|expects a) number"):
        SpaceSaving(epsilon)


@pytest.mark.parametrize("support", [0, 0.09, 1, math.nan, "x", -1])
def test_a_support_is_from_epsilon_to_below_1(support: Any) -> None:
    with pytest.raises(ValueError, match=r"support (must be a finite|expects a) number"):
        SpaceSaving(0.1).frequent(support)


@pytest.mark.parametrize("k", [-1, 1.5, "3", None, math.nan])
def test_how_many_are_asked_for_is_a_whole_number(k: Any) -> None:
    with pytest.raises(ValueError, match="k must be a whole number of at least 0"):
        SpaceSaving(0.1).top(k)


def test_an_unhashable_key_has_no_estimate() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        SpaceSaving(0.1).estimate([])


def test_an_iterator_that_has_ended_is_not_asked_again() -> None:
    class Pausing:
        """Ends for now, and goes on when asked again."""

        asked = 0

        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            self.asked += 1
            if self.asked % 3 == 0:
                raise StopIteration
            return self.asked

    assert counts(Pausing()) == {1: 1, 2: 1}


def test_masked_keys_are_refused() -> None:
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(ValueError, match="a null is not a key, and the array has 1"):
        counts(masked)
    assert counts(np.ma.array([1, 2, 2])) == {1: 1, 2: 2}


def test_numbers_of_numpy_are_options() -> None:
    float32: Any = np.float32  # to type checkers it is no number
    summary = SpaceSaving(float32(0.25))
    summary.update("aab")
    summary.update(["a"] * 3)
    assert [each.key for each in summary.frequent(float32(0.5)).guaranteed] == ["a"]


def long_list(last: Any) -> list[Any]:
    return [f"key {i % 50}" for i in range(5000)] + [last]


def test_a_long_list_is_counted_as_a_short_one_is() -> None:
    for keys in (long_list("last"), long_list("\u20ac"), long_list(7), [*range(3000), "a", 2**70]):
        summary = SpaceSaving(1e-4)
        summary.update(keys)
        assert {each.key: each.count for each in summary} == Counter(keys)
        summary.update(keys)
        assert summary.total == 2 * len(keys)


@pytest.mark.parametrize("bad", [[], math.nan])
def test_a_bad_key_at_the_end_of_a_long_list_leaves_the_summary_as_it_was(bad: Any) -> None:
    summary = SpaceSaving(1e-3)
    with pytest.raises((TypeError, ValueError)):
        summary.update(long_list(bad))
    assert summary.total == len(summary) == 0


def test_a_long_list_that_is_too_much_leaves_the_summary_as_it_was() -> None:
    summary = SpaceSaving(1e-3)
    summary.add("first", 2**63 - 3000)
    with pytest.raises(ValueError, match="5001"):
        summary.update(long_list("last"))
    assert list(summary) == [("first", 2**63 - 3000, 0)]
    summary.update(long_list("last")[:2999])
    assert summary.total == 2**63 - 1


def test_a_subclass_of_a_list_is_iterated() -> None:
    class Doubled(list[str]):
        def __iter__(self) -> Iterator[str]:
            for each in super().__iter__():
                yield each * 2

    summary = SpaceSaving(1e-3)
    summary.update(Doubled(["a"] * 3000))
    assert list(summary) == [("aa", 3000, 0)]
