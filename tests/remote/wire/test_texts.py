"""Texts in columns are checked as Python checks them one by one."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote.wire.texts import are_ascii, lie_within

small = st.integers(-2, 6)


@given(st.binary(max_size=40), st.integers(0, 3000), st.integers(0, 3000))
def test_bytes_above_127_are_found_wherever_they_are(some: bytes, before: int, after: int) -> None:
    letters = b"a" * before + some + b"z" * after
    assert are_ascii(letters) == letters.isascii()


@given(st.lists(small, min_size=1, max_size=8), st.data())
def test_texts_out_of_order_are_found(places: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(places) - 1))
    count = data.draw(st.integers(0, len(places) - 1 - first))
    size = data.draw(small)
    those = places[first : first + count + 1]
    right = those == sorted(those) and those[0] >= 0 and those[-1] <= size
    assert lie_within(pack(f"={len(places)}i", *places), first, count, size) == right


@pytest.mark.parametrize(("first", "count"), [(0, 3), (3, 0), (-1, 1), (0, -1), (2, 1), (1, 2**62)])
def test_offsets_that_are_not_there_are_not_looked_at(first: int, count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} texts from {first} on, with 3 offsets"):
        lie_within(pack("=3i", 0, 0, 0), first, count, 0)
