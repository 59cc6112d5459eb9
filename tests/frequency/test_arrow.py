"""Keys from Arrow arrays."""

from collections.abc import Hashable
from typing import Any

import pytest

from callboard.frequency import SpaceSaving

pa = pytest.importorskip("pyarrow")


def counts(keys: Any) -> dict[Hashable, int]:
    summary = SpaceSaving(0.01)
    summary.update(keys)
    return {each.key: each.count for each in summary}


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(list("abca")),
        pa.array(list("abca"), pa.large_string()),
        pa.chunked_array([list("ab"), list("ca")]),
        pa.array(list("abca")).dictionary_encode(),
    ],
)
def test_arrays_of_texts_are_counted(keys: Any) -> None:
    assert counts(keys) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([3, 1, 3]),
        pa.array([3, 1, 3], pa.int8()),
        pa.array([3, 1, 3], pa.uint64()),
        pa.chunked_array([[3], [1, 3]]),
        pa.array([3, 1, 3]).dictionary_encode(),
        pa.array([0, 3, 1, 3]).slice(1),
    ],
)
def test_arrays_of_integers_are(keys: Any) -> None:
    assert counts(keys) == {3: 2, 1: 1}


def test_empty_arrays_hold_no_keys() -> None:
    for keys in (pa.array([], pa.int64()), pa.chunked_array([], pa.string())):
        assert counts(keys) == {}


def test_other_sorts_are_keys_as_their_objects() -> None:
    assert counts(pa.array([b"a", b"a"])) == {b"a": 2}
    assert counts(pa.array([True, False, True])) == {True: 2, False: 1}
    assert counts(pa.array([2**64 - 1, 1], pa.uint64())) == {2**64 - 1: 1, 1: 1}


@pytest.mark.parametrize("keys", [pa.array([1.5]), pa.array([[1]]), pa.array([{"a": 1}])])
def test_an_array_without_keys_is_refused(keys: Any) -> None:
    with pytest.raises(
        TypeError, match="keys expect an array of integers, strings, bytes or objects, got"
    ):
        counts(keys)


def test_an_array_with_nulls_is_refused() -> None:
    with pytest.raises(ValueError, match="a null is not a key, and the array has 2"):
        counts(pa.array(["a", None, None]))
