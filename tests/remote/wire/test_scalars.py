"""Single plain values have the same bytes as in the codec."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote.errors import CodecError
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.scalars import pack_scalar, unpack_scalar

CODEC = Codec()
EDGES = [
    sign * (2**bits + step)
    for bits in (5, 7, 8, 15, 16, 31, 32, 63, 64, 70)
    for step in (-1, 0, 1)
    for sign in (1, -1)
]


def expect_the_codecs(value: Any) -> None:
    packed = pack_scalar(value)
    if packed is not None:
        assert packed == CODEC.encode(value)
        back: Any = unpack_scalar(packed)
        assert type(back) is type(value)
        assert back == value or math.isnan(value)


@given(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.sampled_from(EDGES)
    | st.floats()
    | st.text(max_size=300)
    | st.binary(max_size=300)
)
def test_a_value_has_the_bytes_of_the_codec(value: Any) -> None:
    expect_the_codecs(value)


@given(st.binary(max_size=12))
def test_bytes_are_the_value_that_the_codec_finds_in_them(data: bytes) -> None:
    try:
        value: Any = unpack_scalar(data)
    except ValueError:
        return
    expected = CODEC.decode(data)
    assert type(value) is type(expected)
    assert value == expected or math.isnan(value)


@pytest.mark.parametrize(
    "value", [[], {}, (1,), 2**64, "a" * 300, b"a" * 300, "\ud800", True.__class__, object()]
)
def test_other_values_are_left_to_the_codec(value: Any) -> None:
    assert pack_scalar(value) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xa2a", b"\xa1\xff", b"\x01\x02", b"\xc1", b"\xcb\0", b"\xd9"]
)
def test_bytes_that_are_cut_or_invalid_are_left_to_the_codec(data: bytes) -> None:
    with pytest.raises(ValueError, match="expected a single plain value"):
        unpack_scalar(data)
    with pytest.raises(CodecError):
        CODEC.decode(data)
