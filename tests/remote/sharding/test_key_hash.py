"""The hash of keys, against its description written down in Python."""

import json
import os
import struct
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote import shard_of
from callboard.remote.errors import CodecError
from callboard.remote.sharding.key_hash import key_hash

WORDS = 2**64 - 1
ODD = 0x9E3779B97F4A7C15
MODULUS = 2**61 - 1
EPOCH = datetime(1970, 1, 1)


def mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORDS
    value = (value ^ value >> 27) * 0x94D049BB133111EB & WORDS
    return value ^ value >> 31


def fold(one: int, other: int) -> int:
    return (one * other & WORDS) ^ one * other >> 64


def described(kind: int, run: bytes) -> int:
    """The hash of a run of bytes."""
    state, size = mix(kind), len(run)
    while len(run) > 16:
        low, high = struct.unpack_from("<QQ", run)
        state = (ODD + fold(low ^ state, high ^ ODD * state & WORDS)) & WORDS
        run = run[16:]
    if len(run) >= 8:
        low, high = int.from_bytes(run[:8], "little"), int.from_bytes(run[-8:], "little")
    elif len(run) >= 4:
        low, high = int.from_bytes(run[:4], "little"), int.from_bytes(run[-4:], "little")
    elif run:
        low, high = run[0] << 8 | run[len(run) // 2], run[-1]
    else:
        low = high = 0
    return fold(ODD ^ size, (ODD + fold(low ^ state, high ^ ODD * state & WORDS)) & WORDS)


def word(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def run_of(key: Any) -> tuple[int, bytes]:
    """The kind and the bytes of a key."""
    match key:
        case None:
            return 1, b""
        case str():
            return 4, key.encode()
        case bytes():
            return 5, key
        case tuple():
            return 6, b"".join(described(*run_of(item)).to_bytes(8, "little") for item in key)
        case datetime(tzinfo=None):
            return 7, word((key - EPOCH) // timedelta(microseconds=1))
        case datetime():
            return 8, word((key - EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1))
        case date():
            return 9, word((key - EPOCH.date()).days)
        case timedelta():
            return 10, word(key // timedelta(microseconds=1))
        case UUID():
            return 11, key.bytes
        case _ if key != key:
            return 3, b""
        case _:
            return 2, word(hash(key))


LONGEST = timedelta(microseconds=2**63 - 1)
KEYS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.decimals(),
        st.text(),
        st.binary(),
        st.datetimes(),
        st.datetimes(timezones=st.just(UTC)),
        st.dates(),
        st.timedeltas(-LONGEST, LONGEST),
        st.uuids(),
    ).filter(lambda key: not (isinstance(key, Decimal) and key.is_snan())),
    lambda keys: st.lists(keys, max_size=3).map(tuple),
    max_leaves=6,
)


@given(KEYS)
def test_a_key_has_the_hash_that_is_described(key: Any) -> None:
    assert key_hash(key) == described(*run_of(key))


@given(st.floats(allow_nan=False))
def test_a_float_has_the_hash_of_the_number_that_it_is(number: float) -> None:
    assert key_hash(number) == key_hash(Decimal(number))
    if number.is_integer():
        assert key_hash(number) == key_hash(int(number))


def same(*keys: Any) -> list[Any]:
    return list(keys)


EQUAL = [
    same(1, True, 1.0, Decimal(1), Decimal("1.00")),
    same(0, False, 0.0, -0.0, Decimal("-0")),
    same(-1, -1.0, Decimal(-1)),
    same(2**63, float(2**63), Decimal(2**63)),
    same(10**300, Decimal(10) ** 300),
    same(0.5, Decimal("0.5")),
    same(float("inf"), Decimal("Infinity")),
    same((1, "a"), (1.0, "a"), (True, "a")),
    same(
        datetime(2024, 6, 1, 12, tzinfo=UTC),
        datetime(2024, 6, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        datetime(2024, 6, 1, 14, tzinfo=ZoneInfo("Europe/Berlin")),
    ),
    same(datetime(2024, 1, 1), datetime(2024, 1, 1, fold=1)),
    same(timedelta(hours=1), timedelta(seconds=3600)),
]


@pytest.mark.parametrize("keys", EQUAL, ids=repr)
def test_equal_keys_have_one_hash(keys: list[Any]) -> None:
    assert all(key == keys[0] for key in keys)
    assert len({key_hash(key) for key in keys}) == 1


@pytest.mark.parametrize("fold", [0, 1])
def test_a_moment_of_an_hour_that_comes_twice_has_the_hash_that_it_has_in_utc(fold: int) -> None:
    local = datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=ZoneInfo("Europe/Berlin"))
    assert key_hash(local) == key_hash(datetime(2024, 10, 27, fold, 30, tzinfo=UTC))


def test_every_nan_is_one_key() -> None:
    payload: float = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    nans = [float("nan"), -float("nan"), payload, Decimal("NaN"), Decimal("sNaN")]
    assert len({key_hash(nan) for nan in nans}) == 1


def test_keys_unequal_in_python_have_different_hashes() -> None:
    keys = ["a", b"a", ("a",), (("a",),), "1", 1, None, "", b"", (), date(2024, 1, 1)]
    keys += [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), timedelta(0), 0, float("nan")]
    keys += [(None,), (None, None), ("ab", "c"), ("a", "bc"), UUID(int=0), bytes(16)]
    assert len({key_hash(key) for key in keys}) == len(keys)


class Colour(IntEnum):
    RED = 1


def nested() -> tuple[Any, ...]:
    key: tuple[Any, ...] = ()
    for _ in range(100):
        key = (key,)
    return key


REFUSED = [
    (Colour.RED, "a key must be .*, got a .*Colour"),
    (Fraction(1, 2), "got a fractions.Fraction"),
    (1j, "got a builtins.complex"),
    (bytearray(b"a"), "got a builtins.bytearray"),
    (frozenset(), "got a builtins.frozenset"),
    ([], "got a builtins.list"),
    ((1, []), "got a builtins.list"),
    (time(1), "got a datetime.time"),
    ("\ud800", "is not valid text: surrogates not allowed"),
    (timedelta.max, "is too long for a key"),
    (nested(), "more than 64 tuples in one another"),
]


@pytest.mark.parametrize(("key", "says"), REFUSED, ids=lambda value: repr(value)[:30])
def test_a_wrong_key_is_refused(key: Any, says: str) -> None:
    with pytest.raises(CodecError, match=says):
        key_hash(key)


# State lies on disk where these put it: they are not to change.
PINNED = {
    "None": 2,
    "0": 1,
    "1": 3,
    "-7": 5,
    "2**80": 5,
    "0.25": 3,
    "'ink'": 4,
    "'a longer text, of more than sixteen bytes'": 0,
    "b'ink'": 6,
    "('ink', 1)": 3,
}


def test_keys_stay_where_they_are() -> None:
    assert {key: shard_of(eval(key), 7) for key in PINNED} == PINNED


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_other_processes_find_the_same_shard(seed: str) -> None:
    program = (
        "import json, sys; from callboard.remote import shard_of;"
        "print(json.dumps({key: shard_of(eval(key), 7) for key in json.loads(sys.argv[1])}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, json.dumps(list(PINNED))],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
        timeout=60,
        cwd=os.path.dirname(__file__),
    )
    assert json.loads(told.stdout) == PINNED


@pytest.mark.parametrize("shards", [2, 3, 4, 10, 16])
@pytest.mark.parametrize("make", [int, str, float, lambda n: 16 * n, lambda n: ("user", n)])
def test_keys_spread_over_the_shards(shards: int, make: Any) -> None:
    counts = [0] * shards
    for number in range(20_000):
        counts[shard_of(make(number), shards)] += 1
    expected = 20_000 / shards
    assert max(abs(count - expected) for count in counts) < 5 * expected**0.5
