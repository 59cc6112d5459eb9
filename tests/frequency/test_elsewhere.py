"""Summaries go to other processes: by pickle, and as msgpack bytes."""

import copy
import pickle
from collections.abc import Hashable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.frequency import SpaceSaving
from tests.frequency.test_bounds import ANYTHING, EPSILONS, NATIVE


def same(left: SpaceSaving, right: SpaceSaving) -> None:
    assert list(left) == list(right)
    assert [type(each.key) for each in left] == [type(each.key) for each in right]
    assert (left.epsilon, left.total, left.unseen) == (right.epsilon, right.total, right.unseen)


@given(EPSILONS, st.lists(ANYTHING, max_size=40), st.lists(NATIVE, max_size=20))
def test_a_pickle_goes_on_where_the_summary_was(
    epsilon: float, keys: list[Hashable], later: list[Hashable]
) -> None:
    summary = SpaceSaving(epsilon)
    summary.update(keys)
    for other in (pickle.loads(pickle.dumps(summary)), summary.copy(), copy.deepcopy(summary)):
        same(other, summary)
        other.update(later)
        assert other.total == len(keys) + len(later)
    same(pickle.loads(pickle.dumps(summary)), summary)


@given(
    EPSILONS, st.lists(NATIVE | st.floats(allow_nan=False) | st.booleans() | st.none(), max_size=40)
)
def test_bytes_hold_the_summary(epsilon: float, keys: list[Hashable]) -> None:
    summary = SpaceSaving(epsilon)
    summary.update(keys)
    same(SpaceSaving.from_bytes(summary.to_bytes()), summary)


def test_a_merged_summary_goes_through_bytes_too() -> None:
    summary, other = SpaceSaving(0.3), SpaceSaving(0.2)
    summary.update("abcdefg"[i % 7] for i in range(100))
    other.update("cdexyz"[i % 6] for i in range(50))
    summary.merge(other)
    same(SpaceSaving.from_bytes(summary.to_bytes()), summary)


DEEP: tuple[Any, ...] = ()
for _ in range(600):
    DEEP = (DEEP,)


@pytest.mark.parametrize(
    "key", [2**63, frozenset({1}), ("a", 2**64), "\ud800", ("a", frozenset()), DEEP]
)
def test_a_key_without_bytes_is_named(key: Hashable) -> None:
    summary = SpaceSaving(0.1)
    summary.add(key)
    with pytest.raises(TypeError, match=r"a key of type \w+ has no bytes, but may be"):
        summary.to_bytes()
    same(pickle.loads(pickle.dumps(summary)), summary)


def parts(**changes: Any) -> bytes:
    """Return the bytes of a summary with parts that are other ones."""
    summary = SpaceSaving(0.5)
    summary.update(["a", "b", "a"])
    whole = {**msgpack.unpackb(summary.to_bytes()), **changes}
    packed: bytes = msgpack.packb({name: part for name, part in whole.items() if part is not ...})
    return packed


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"abc",
        msgpack.packb([1]),
        msgpack.packb({}),
        parts()[:-1],
        parts() + b"\0",
        parts(format="x"),
        parts(version=2),
        parts(version=...),
        parts(epsilon=0.0),
        parts(epsilon="x"),
        parts(epsilon=...),
        parts(total=-1),
        parts(total=1.5),
        parts(total=True),
        parts(total=2**63),
        parts(keys=["a"]),
        parts(keys="ab"),
        parts(keys=...),
        parts(keys=["a", "a"]),
        parts(keys=[{}, "a"]),
        parts(counts=[0, 1]),
        parts(counts=[1, -1]),
        parts(counts=[1.0, 1]),
        parts(errors=[0, -1]),
        parts(errors=[2, 0]),
        parts(counts=[2, 2**63]),
        parts(keys=[1, 2, 3, 4], counts=[1] * 4, errors=[0] * 4),
        parts(total=2),
        parts(total=4, keys=["a"], counts=[3], errors=[0]),
        parts(total=100, keys=[], counts=[], errors=[]),
        parts(total=9, keys=["a", "b", "c"], counts=[3, 3, 3], errors=[0, 0, 0]),
        parts(keys=[msgpack.Timestamp(1), "a"]),
    ],
)
def test_bytes_that_are_no_summary_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="these bytes are not those of a summary: "):
        SpaceSaving.from_bytes(data)


@pytest.mark.parametrize("data", [None, "text", 5])
def test_a_value_that_is_not_bytes_is_refused(data: Any) -> None:
    with pytest.raises(TypeError):
        SpaceSaving.from_bytes(data)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_no_bytes_crash(noise: bytes, at: int) -> None:
    data = parts()
    broken = data[:at] + noise + data[at + len(noise) :]
    try:
        summary = SpaceSaving.from_bytes(broken)
    except ValueError:
        return
    summary.update(["a", "z"])


def test_merging_wants_bounds_that_can_be_kept() -> None:
    summary, coarse = SpaceSaving(0.1), SpaceSaving(0.2)
    with pytest.raises(ValueError, match=r"epsilon 0.1 cannot keep its bounds with one of 0.2"):
        summary.merge(coarse)
    with pytest.raises(ValueError, match="merged with itself"):
        summary.merge(summary)
    coarse.merge(summary)
    with pytest.raises(TypeError):
        summary.merge(None)  # type: ignore[arg-type]


def test_a_merge_beyond_63_bits_changes_nothing() -> None:
    summary, other = SpaceSaving(0.1), SpaceSaving(0.1)
    summary.add("a", 2**62)
    other.add("a", 2**62)
    with pytest.raises(ValueError, match=r"counts are at most 2\*\*63 - 1"):
        summary.merge(other)
    assert summary.estimate("a").count == 2**62
