"""Bytes that are made to cause much work are refused early, and others get their turns."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from struct import pack
from typing import Any, ClassVar
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote.errors import CodecError
from callboard.remote.protocol.requests import Layout
from callboard.remote.staging.targets import counting_rows
from callboard.remote.wire import codec as codec_module
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import finish
from callboard.remote.wire.packed_rows import count_plain_rows
from tests.remote.wire.test_codec import CODEC as KNOWN
from tests.remote.wire.test_codec import exactly, values

MODULUS = 2**61 - 1  # of Python's hash of numbers: all multiples of it have hash 0
MANY = 2_000


def extension(code: int, items: list[Any], codec: Codec) -> bytes:
    data = codec.encode(items)
    return b"\xc9" + pack("!IB", len(data), code) + data


def set_of(items: list[Any], codec: Codec) -> bytes:
    return extension(2, items, codec)


def frozenset_of(items: list[Any], codec: Codec) -> bytes:
    return extension(3, items, codec)


def dict_of(items: list[Any], codec: Codec) -> bytes:
    return b"\xdf" + pack("!I", len(items)) + b"".join(codec.encode(key) + b"\1" for key in items)


MADE: list[Callable[[list[Any], Codec], bytes]] = [set_of, frozenset_of, dict_of]
COLLIDING: dict[str, list[Any]] = {
    "ints": [number * MODULUS for number in range(MANY)],
    "negative ints": [-5 - number * MODULUS for number in range(MANY)],
    "decimals": [Decimal(number * MODULUS) for number in range(MANY)],
    "UUIDs": [UUID(int=number * MODULUS) for number in range(MANY)],
    "tuples": [("a", number * MODULUS) for number in range(MANY)],
    "frozensets": [frozenset({number * MODULUS}) for number in range(MANY)],
    "tuples of tuples": [(1, (2, number * MODULUS)) for number in range(MANY)],
    "ints and decimals": [
        (int, Decimal)[number % 2](number * MODULUS + 7) for number in range(MANY)
    ],
}


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("keys", COLLIDING.values(), ids=COLLIDING)
def test_many_keys_of_one_hash_are_refused(
    make: Callable[[list[Any], Codec], bytes], keys: list[Any]
) -> None:
    codec = Codec()
    with pytest.raises(CodecError, match="keys of a dict or set collide"):
        codec.decode(make(keys, codec))
    with pytest.raises(CodecError, match="keys of a dict or set collide"):
        codec.decode(b"\x92\1" + make(keys, codec))
    few = codec.decode(make(keys[:30], codec))
    assert len(few) == 30


@dataclass(eq=False, frozen=True)
class Key:
    """All have the same hash, and count how often one is compared with another."""

    number: int
    compared: ClassVar[int] = 0

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        Key.compared += 1
        return isinstance(other, Key) and other.number == self.number


@pytest.mark.parametrize("make", MADE)
def test_comparisons_of_keys_are_bounded(make: Callable[[list[Any], Codec], bytes]) -> None:
    codec = Codec([Key])
    data = make([Key(number) for number in range(MANY)], codec)
    Key.compared = 0
    with pytest.raises(CodecError, match="collide"):
        codec.decode(data)
    assert Key.compared < 10_000


def test_hashes_that_differ_and_go_the_same_way_are_refused() -> None:
    np = pytest.importorskip("numpy")
    size, long = 1 << 16, 24_000
    chain, at = [], 0
    for _ in range(long):
        chain.append(at)
        at = (at * 5 + 1) % size
    taken = np.zeros(size, bool)
    taken[chain] = True
    is_early = np.zeros(size, bool)
    is_early[chain[: long // 3]] = True
    # Numbers for which a dict looks at places that are taken, then goes along all of the chain.
    numbers = np.arange(size, 1 << 22)
    places, rest, fits = numbers % size, numbers.copy(), True
    for _ in range(5):
        fits = fits & taken[places]
        rest >>= 5
        places = (places * 5 + rest + 1) % size
    hostile = numbers[fits & is_early[places]].tolist()
    assert len(hostile) > 1_000
    assert len({hash(key) for key in chain + hostile}) == len(chain + hostile)
    with pytest.raises(CodecError, match="collide"):
        CODEC.decode(msgpack.packb(dict.fromkeys(chain + hostile)))
    ordinary = CODEC.decode(msgpack.packb(dict.fromkeys(chain + numbers[: len(hostile)].tolist())))
    assert len(ordinary) == len(chain) + len(hostile)


CODEC = Codec()
COUNT = 20_000
ORDINARY: dict[str, list[Any]] = {
    **{
        f"multiples of 2**{by}": [number << by for number in range(COUNT)] for by in range(0, 61, 3)
    },
    **{f"2**-{by}": [number * 2.0**-by for number in range(COUNT)] for by in range(0, 61, 7)},
    "powers of 2": [2.0**power for power in range(-1074, 1024)],
    "negative": [-number for number in range(COUNT)],
    "cents": [Decimal(number) / 100 for number in range(COUNT)],
    "tenths": [number * 0.1 for number in range(COUNT)],
    "pairs": [(a - 70, b) for a in range(140) for b in range(140)],
    "sets of two": [frozenset({a, b}) for a in range(140) for b in range(a)],
    "microseconds": [1_700_000_000_000_000 + 60_000_000 * number for number in range(COUNT)],
    "durations": [timedelta(seconds=number) for number in range(COUNT)],
    "UUIDs": [UUID(int=number << 64) for number in range(COUNT)],
    "texts": [str(number) for number in range(COUNT)],
    "halves": [float(Fraction(number, 2)) for number in range(COUNT)],
}


@pytest.mark.parametrize("keys", ORDINARY.values(), ids=ORDINARY)
def test_keys_that_nobody_chose_to_collide_are_taken(keys: list[Any]) -> None:
    assert CODEC.decode(CODEC.encode({*keys})) == {*keys}
    assert CODEC.decode(CODEC.encode(dict.fromkeys(keys))) == dict.fromkeys(keys)


def test_values_made_in_this_process_may_collide() -> None:
    keys = COLLIDING["ints"]
    encoded = CODEC.encode({"state": {*keys}})
    assert CODEC.decode(encoded, is_trusted=True) == {"state": {*keys}}
    few = Codec(max_values=10)
    assert few.decode(encoded, is_trusted=True) == {"state": {*keys}}


@pytest.mark.parametrize(
    "item", [b"\x90", b"\x80", b"\xc7\1\1\x90", b"\xc7\1\2\x90", b"\xc7\1\3\x90", b"\1", b"\xa0"]
)
def test_more_values_than_may_be_are_refused_by_their_announcement(item: bytes) -> None:
    codec = Codec(max_values=1_000)
    with pytest.raises(CodecError, match=r"more than 1000 values"):
        codec.decode(b"\xdc" + pack("!H", 1_000) + item * 1_000)
    with pytest.raises(CodecError, match=r"more than 1000 values"):
        codec.decode(b"\x92" + (b"\xdc" + pack("!H", 600) + b"\1" * 600) * 2)
    assert len(codec.decode(b"\xdc" + pack("!H", 200) + item * 200)) == 200


def test_a_container_counts_as_four_values() -> None:
    assert Codec(max_values=8).decode(b"\x91\x90") == [[]]
    with pytest.raises(CodecError, match="more than 7 values"):
        Codec(max_values=7).decode(b"\x91\x90")


def taken(steps: Generator[None, None, Any]) -> tuple[int, Any]:
    """Return how many slices it took, and what came of it."""
    count = 1
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1


def test_large_values_are_decoded_in_slices() -> None:
    large: list[Any] = [
        [{}] * 100_000,
        {*range(500_000)},
        [(1, (2,))] * 50_000,
        [Decimal(1)] * 20_000,
    ]
    for value in large:
        data = CODEC.encode(value)
        count, decoded = taken(CODEC.decoding(data))
        assert decoded == value
        assert count > 5
    assert taken(CODEC.decoding(b"\x93\1\2\3")) == (1, [1, 2, 3])


@given(values, st.integers(1, 9))
def test_slices_make_no_difference(value: Any, work: int) -> None:
    data = KNOWN.encode(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec_module, "_AT_ONCE", 0)
        patch.setattr(codec_module, "_SLICE", work)
        assert exactly(taken(KNOWN.decoding(data))[1]) == exactly(value)
        rows = KNOWN.encode_rows([value, value])
        assert exactly(taken(KNOWN.decoding_rows(rows))[1]) == exactly([value, value])


@given(
    st.lists(st.one_of(st.integers(), st.lists(st.integers(0, 9)), st.text())), st.integers(1, 60)
)
def test_rows_that_are_counted_hold_no_more_values_than_may_be(rows: list[Any], most: int) -> None:
    packed = CODEC.encode_rows(rows)
    try:
        decoded = len(Codec(max_values=most).decode_rows(packed))
    except CodecError:
        decoded = -1
    assert count_plain_rows(packed, most) in (decoded, -1)
    plain = all(not isinstance(row, int) or -(2**63) <= row < 2**64 for row in rows)
    assert not plain or count_plain_rows(packed, most) == decoded


def test_rows_with_keys_that_may_collide_are_not_counted() -> None:
    doubles = [number * 2.0 for number in range(100)]
    for keys in (COLLIDING["ints"][:100], doubles):
        packed = b"\0\x91" + dict_of([*keys], CODEC)
        assert count_plain_rows(packed) == -1
    assert count_plain_rows(b"\0\x91" + dict_of([str(n) for n in range(100)], CODEC)) == 1


@pytest.mark.parametrize("make", MADE)
def test_colliding_keys_are_refused_in_staging(make: Callable[[list[Any], Codec], bytes]) -> None:
    payload = b"\0\x91" + make(COLLIDING["ints"], CODEC)
    with pytest.raises(CodecError, match="collide"):
        finish(counting_rows(CODEC, Layout.ROWS, payload))
    few = b"\0\x91" + make(COLLIDING["ints"][:20], CODEC)
    assert finish(counting_rows(CODEC, Layout.ROWS, few)) == 1


def test_rows_of_too_many_values_are_refused_when_they_are_staged() -> None:
    payload = CODEC.encode_rows([[1] * 100])
    assert finish(counting_rows(Codec(max_values=120), Layout.ROWS, payload)) == 1
    with pytest.raises(CodecError, match="more than 100 values"):
        finish(counting_rows(Codec(max_values=100), Layout.ROWS, payload))
