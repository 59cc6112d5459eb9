"""Rows are counted in their bytes as decoding counts them; doubtful bytes are left to decoding."""

from datetime import date
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard.remote.wire.codec import Codec
from callboard.remote.wire.packed_rows import count_plain_rows

CODEC = Codec()
keys = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
plain = st.recursive(
    keys | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(keys, inner, max_size=20),
    max_leaves=20,
)
rows_of = st.lists(plain) | st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[plain] * width), max_size=9)
)


def agrees(packed: bytes) -> bool:
    """Whether bytes are counted, and decoded as so many rows."""
    count = count_plain_rows(packed)
    return count >= 0 and len(CODEC.decode_rows(packed)) == count


@given(rows_of)
def test_plain_rows_are_counted(rows: list[Any]) -> None:
    assert count_plain_rows(CODEC.encode_rows(rows)) == len(rows)


@pytest.mark.parametrize("size", [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
def test_every_size_has_its_header(size: int) -> None:
    values = ["x" * size, bytes(size), [1] * size, dict.fromkeys(map(str, range(size)))]
    assert count_plain_rows(CODEC.encode_rows(values)) == 4
    assert count_plain_rows(CODEC.encode_rows([1] * size)) == size
    assert (
        size == 0
        or count_plain_rows(CODEC.encode_rows([(number,) for number in range(size)])) == size
    )


@given(rows_of, st.data())
def test_counted_rows_can_be_decoded(rows: list[Any], data: st.DataObject) -> None:
    packed = bytearray(CODEC.encode_rows(rows))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    changed = bytes(packed[: data.draw(st.integers(0, len(packed)))])
    assert count_plain_rows(changed) == -1 or agrees(changed)


@given(st.binary(max_size=12))
@example("aé€😀z".encode())
@example(b"12345678\xe0\x9f\xbf")  # too long
@example(b"\xed\xa0\x80")  # a surrogate
@example(b"\xf4\x90\x80\x80")  # beyond the last
@example(b"1234567\xe2\x82")  # cut off
def test_texts_are_utf_8_as_python_has_it(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        expected = -1
    else:
        expected = 1
    assert count_plain_rows(b"\0\x91" + bytes([0xA0 + len(text)]) + text) == expected


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\0",
        b"\2\x91\1",  # no layout
        b"\0\1",  # no array
        b"\1\x90",  # no columns
        b"\1\x91\1",  # a column that is none
        b"\1\x92\x91\1\x92\1\2",  # columns that differ in length
        b"\0\x91\1\1",  # more than all
        b"\0\xdd\xff\xff\xff\xff\1",  # less
        b"\0\x91\x81\x90\1",  # a key that cannot be hashed
        b"\0\x91\xc1",  # what msgpack has not
    ],
)
def test_bytes_without_rows_are_not_counted(packed: bytes) -> None:
    assert count_plain_rows(packed) == -1


def test_registered_types_and_deep_values_are_left_to_the_decoder() -> None:
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]
    for value in (date(2026, 1, 1), 2**70, (1, 2), {1}, deep):
        packed = CODEC.encode_rows([[value]])
        assert count_plain_rows(packed) == -1
        assert CODEC.decode_rows(packed) == [[value]]
