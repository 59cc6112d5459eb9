"""Values survive encoding, and bytes from anywhere raise CodecError or give a value."""

import enum
import math
import zoneinfo
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard import ConfigError
from callboard.remote.errors import CodecError
from callboard.remote.wire import times as times_module
from callboard.remote.wire.codec import DEEPEST, Codec

CORPUS = Path(__file__).with_name("corpus")


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = None
    length: float = field(default=0.0, init=False)


class Colour(enum.Enum):
    RED = "r"
    GREEN = "g"


class Right(enum.IntFlag):
    READ = 1
    WRITE = 2


CODEC = Codec([Point, Colour, Right])

zones = st.timezones() | st.builds(
    timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))
)
times = st.times() | st.times(timezones=zones)
times |= times.map(lambda value: value.replace(fold=1))
moments = st.datetimes() | st.datetimes(timezones=zones)
keys = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary() | st.dates() | st.uuids() | st.sampled_from(Colour)
    | st.sampled_from([Right.READ, Right.READ | Right.WRITE]),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
plain = (
    keys | moments | moments.map(lambda value: value.replace(fold=1)) | times | st.timedeltas()
    | st.decimals(allow_nan=False)
)  # fmt: skip
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4) | st.sets(keys, max_size=4)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=20,
)  # fmt: skip


def exactly(value: Any) -> Any:
    """Show what equality hides: 1 and True, 0.0 and -0.0, a list's and a tuple's items."""
    if isinstance(value, (list, tuple)):
        return type(value), [exactly(item) for item in value]
    if isinstance(value, dict):
        return dict, [(exactly(key), exactly(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value), value
    if isinstance(value, Point):
        return Point, exactly(value.x), exactly(value.y), exactly(value.length)
    if isinstance(value, datetime):
        return datetime, value.tzinfo, value.utcoffset(), value.fold, value.replace(tzinfo=None)
    if isinstance(value, time):
        return time, value.tzinfo, value.utcoffset(), value.fold, value.replace(tzinfo=None)
    if isinstance(value, (float, Decimal)):
        return type(value), repr(value)
    return type(value), value


@given(values)
@example(2**64)
@example(-(2**63) - 1)
@example((((),),))
@example({(1, (2,)): {frozenset({3}): [(4,)]}})
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert exactly(CODEC.decode(CODEC.encode(value))) == exactly(value)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "-NaN12", "Infinity", "-0", "1E+400", "1.500"])
def test_a_decimal_keeps_its_digits_and_its_sign(text: str) -> None:
    assert str(CODEC.decode(CODEC.encode(Decimal(text)))) == str(Decimal(text))


def test_not_a_number_stays_one() -> None:
    assert math.isnan(CODEC.decode(CODEC.encode(math.nan)))


def instant(value: datetime) -> datetime:
    return value.astimezone(UTC)


PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize(
    "local",
    [
        datetime(2026, 7, 1, 12),
        datetime(2026, 10, 25, 2, 30),  # comes twice
        datetime(2026, 3, 29, 2, 30),  # never comes
        datetime(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ],
)
@pytest.mark.parametrize("name", [
    "Europe/Paris", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Dublin", "UTC", "Asia/Kolkata",
])  # fmt: skip
def test_a_named_zone_arrives_with_its_name_and_fold(name: str, local: datetime, fold: int) -> None:
    value = local.replace(tzinfo=ZoneInfo(name), fold=fold)
    arrived = CODEC.decode(CODEC.encode(value))
    assert exactly(arrived) == exactly(value)
    assert arrived.tzinfo is value.tzinfo


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 10, 25, 2, 30, fold=1),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=timezone(timedelta(hours=1))),
        time(2, 30, fold=1),
        time(2, 30, 0, 1, fold=1, tzinfo=timezone(timedelta(microseconds=1))),
        time(12, tzinfo=PARIS),
        time(12, tzinfo=ZoneInfo("UTC")),
    ],
)
def test_a_fold_arrives_also_without_a_named_zone(value: Any) -> None:
    assert exactly(CODEC.decode(CODEC.encode(value))) == exactly(value)


def test_an_unknown_zone_arrives_as_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    value = datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=1)
    encoded, of_the_day = CODEC.encode(value), CODEC.encode(time(12, tzinfo=PARIS))
    monkeypatch.setattr(times_module, "_zones", lambda: frozenset({"UTC"}))
    arrived = CODEC.decode(encoded)
    assert arrived.tzinfo == timezone(timedelta(hours=1))
    assert instant(arrived) == instant(value)
    with pytest.raises(CodecError, match="the zone 'Europe/Paris' is unknown here"):
        CODEC.decode(of_the_day)


def test_with_another_offset_in_its_zone_the_moment_counts() -> None:
    encoded = CODEC.encode(datetime(2026, 7, 1, 12, tzinfo=PARIS))
    assert encoded.count(b"+02:00") == 1
    arrived = CODEC.decode(encoded.replace(b"+02:00", b"+05:00"))
    assert arrived == datetime(2026, 7, 1, 9, tzinfo=PARIS)


def test_a_time_encoded_with_an_offset_keeps_it() -> None:
    encoded = ext(5, b"2026-07-01T12:00:00+02:00")
    assert CODEC.decode(encoded).tzinfo == timezone(timedelta(hours=2))
    assert CODEC.encode(CODEC.decode(encoded)) == encoded


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/localtime", "Nowhere/None", "", "Zulu]"]
)
def test_zone_names_are_those_that_are_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoneinfo, "ZoneInfo", lambda key: pytest.fail(f"looked for {key}"))
    arrived = CODEC.decode(ext(13, f"02026-07-01T12:00:00+02:00[{name}]".encode()))
    assert arrived.tzinfo == timezone(timedelta(hours=2))


@pytest.mark.parametrize("microseconds", [1, -1, 999_999, 1_000_001])
def test_an_offset_of_less_than_a_second_arrives(microseconds: int) -> None:
    zone = timezone(timedelta(microseconds=microseconds))
    for value in (datetime(2026, 7, 1, 12, tzinfo=zone), time(12, tzinfo=zone)):
        arrived = CODEC.decode(CODEC.encode(value))
        assert arrived.utcoffset() == timedelta(microseconds=microseconds)


@given(st.lists(values, max_size=5))
def test_rows_come_back_as_they_were(rows: list[Any]) -> None:
    assert exactly(CODEC.decode_rows(CODEC.encode_rows(rows))) == exactly(rows)


@given(st.integers(0, 4).flatmap(lambda n: st.lists(st.tuples(*[values] * n), max_size=5)))
def test_rows_that_are_tuples_of_one_length_come_back(rows: list[Any]) -> None:
    assert exactly(CODEC.decode_rows(CODEC.encode_rows(rows))) == exactly(rows)


def test_rows_that_are_tuples_travel_as_columns() -> None:
    rows = [(number, "name") for number in range(100)]
    assert len(CODEC.encode_rows(rows)) < 0.7 * len(CODEC.encode(rows))


class Text(str):
    pass


class Pair(NamedTuple):
    a: int
    b: int


class Nameless:
    pass


class Wandering(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return None

    def dst(self, when: datetime | None) -> timedelta | None:
        return None

    def tzname(self, when: datetime | None) -> str | None:
        return None


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Nameless(), "Nameless"),
        (Text("x"), "Text"),
        (Pair(1, 2), "Pair"),
        (1j, "complex"),
        (print, "builtin_function_or_method"),
        ([{"deep": (object(),)}], "builtins.object"),
        (time(12, tzinfo=Wandering()), "no offset"),
        ("\ud800", "surrogates"),
    ],
)  # fmt: skip
def test_a_value_without_an_encoding_is_named(value: Any, named: str) -> None:
    with pytest.raises(CodecError, match=named):
        CODEC.encode(value)
    assert CODEC.decode(CODEC.encode([1])) == [1]  # what was left of it is not in the way


def nested(depth: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


def test_too_deep_values_are_refused_on_both_sides() -> None:
    assert CODEC.decode(CODEC.encode(nested(DEEPEST, lambda v: (v,))))
    with pytest.raises(CodecError, match="nested in more than 64"):
        CODEC.encode(nested(DEEPEST + 1, lambda v: (v,)))
    with pytest.raises(CodecError, match="cannot be encoded"):
        CODEC.encode(nested(100_000, lambda v: [v]))
    forged = b"\x01"
    for _ in range(DEEPEST + 1):
        forged = msgpack.packb(msgpack.ExtType(1, b"\x91" + forged))
    with pytest.raises(CodecError, match="nested in more than 64"):
        CODEC.decode(forged)
    with pytest.raises(CodecError, match="StackError"):
        CODEC.decode(b"\x91" * 100_000 + b"\x01")


def test_an_array_that_claims_more_items_than_there_are_bytes_costs_nothing() -> None:
    with pytest.raises(CodecError):
        CODEC.decode(b"\xdd\xff\xff\xff\xff" + b"\x01" * 100)
    # Each of these would be as long as the whole, and lie in the one before.
    with pytest.raises(CodecError, match="OutOfData"):
        CODEC.decode(b"\xdd\x00\x0f\x00\x00" * 1000 + b"\x01" * 1_000_000)


def ext(code: int, data: bytes) -> bytes:
    packed: bytes = msgpack.packb(msgpack.ExtType(code, data))
    return packed


FORGED = {
    "nothing": b"",
    "two values": b"\x01\x01",
    "an unknown extension": ext(99, b""),
    "an unassigned byte": b"\xc1",
    "a tuple that is a number": ext(1, b"\x01"),
    "a tuple that is a map": ext(1, b"\x80"),
    "a set of lists": ext(2, b"\x91\x90"),
    "a list as a key": b"\x81\x90\x01",
    "a text that is none": b"\xa1\xff",
    "a date that is none": ext(6, b"2026-02-30"),
    "a date in other letters": ext(6, "\uff12026-01-01".encode()),
    "a duration that is too long": ext(8, b"\x7f\xff\xff\xff" * 3),
    "half a duration": ext(8, b"\x00"),
    "a decimal that is none": ext(9, b"one"),
    "a fold that is none": ext(13, b"22026-01-01T00:00:00"),
    "a time without a fold": ext(14, b""),
    "a zone without an end": ext(13, b"02026-01-01T00:00:00+01:00[UTC"),
    "a zone without an offset": ext(13, b"02026-01-01T00:00:00[UTC]"),
    "a short UUID": ext(10, b"\x00" * 15),
    "a dataclass that nobody knows": ext(11, b"\x91\xa4Evil"),
    "a dataclass without a name": ext(11, b"\x90"),
    "a dataclass whose name is a list": ext(11, b"\x91\x90"),
    "a dataclass with too few fields": ext(11, b"\x92\xa5Point\x01"),
    "a dataclass with a field too many": ext(11, b"\x95\xa5Point\x01\x02\x80\x80"),
    "a dataclass with a field that it has not": ext(11, b"\x94\xa5Point\x01\x02\x81\xa1x\x01"),
    "a dataclass with fields in a list": ext(11, b"\x94\xa5Point\x01\x02\x91\xa1x"),
    "an enumeration as a dataclass": ext(11, b"\x92\xa6Colour\xa3RED"),
    "a dataclass as an enumeration": ext(12, b"\x93\xa5Point\x01\x02"),
    "a member that is none": ext(12, b"\x92\xa6Colour\xa4BLUE"),
    "a flag that is none": ext(12, b"\x92\xa5Right\xa1x"),
    "a member too many": ext(12, b"\x93\xa5Right\x01\x02"),
    "a timestamp beyond the calendar": b"\xc7\x0c\xff" + b"\x00" * 4 + b"\x7f" + b"\xff" * 7,
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_forged_bytes_raise_its_own_error_and_no_other(data: bytes) -> None:
    with pytest.raises(CodecError):
        CODEC.decode(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\x01", b"\1\x01", b"\1\x90", b"\2\x90", b"\1\x92\x91\x01\x90", b"\1\x91\x01"],
)
def test_forged_rows_raise_its_own_error_and_no_other(data: bytes) -> None:
    with pytest.raises(CodecError):
        CODEC.decode_rows(data)


def survives(data: bytes) -> None:
    for decode in (CODEC.decode, CODEC.decode_rows):
        try:
            value = decode(data)
        except CodecError:
            continue
        assert exactly(CODEC.decode(CODEC.encode(value))) == exactly(value)


@given(st.binary(max_size=200))
def test_any_bytes_raise_its_own_error_or_are_a_value(data: bytes) -> None:
    survives(data)


@given(values, st.data())
def test_damaged_bytes_raise_its_own_error_or_are_a_value(value: Any, data: st.DataObject) -> None:
    encoded = bytearray(CODEC.encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(encoded) - 1))
        encoded[at] = data.draw(st.integers(0, 255))
    survives(bytes(encoded[: data.draw(st.integers(0, len(encoded)))]))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.hex")), ids=lambda path: path.stem)
def test_bytes_that_caused_errors_once_no_longer_do(path: Path) -> None:
    lines = path.read_text().splitlines()
    survives(bytes.fromhex("".join(line for line in lines if not line.startswith("#"))))


def test_a_timestamp_of_other_programs_is_a_datetime() -> None:
    packed = msgpack.packb(msgpack.Timestamp(1, 500_000_000))
    assert CODEC.decode(packed) == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


def test_types_may_have_other_names() -> None:
    here, there = Codec({"point": Point}), Codec({"point": Point})
    assert there.decode(here.encode(Point(1, [2]))) == Point(1, [2])
    with pytest.raises(CodecError, match="no type is registered here as 'point'"):
        CODEC.decode(here.encode(Point(1)))


def test_fields_that_are_no_arguments_of_the_constructor_arrive() -> None:
    point = Point(1)
    object.__setattr__(point, "length", 2.5)
    assert CODEC.decode(CODEC.encode([point]))[0].length == 2.5


def test_without_such_fields_they_are_what_the_constructor_makes_them() -> None:
    of_an_older_release = ext(11, b"\x93\xa5Point\x01\x02")
    assert exactly(CODEC.decode(of_an_older_release)) == exactly(Point(1, 2))


def test_a_dataclass_with_attributes_that_are_no_fields_is_refused() -> None:
    point = Point(1)
    object.__setattr__(point, "extra", 2)
    with pytest.raises(CodecError, match=r"Point has attributes that are not fields.* extra\."):
        CODEC.encode([point])


@dataclass
class Refused(Exception):
    code: int


@dataclass
class NoFile(OSError):
    name: str


def test_attributes_of_built_in_bases_are_not_reported_as_lost() -> None:
    codec = Codec([Refused, NoFile])
    back = codec.decode(codec.encode([Refused(3), NoFile("x")]))
    assert [(type(each), vars(each)) for each in back] == [
        (Refused, {"code": 3}),
        (NoFile, {"name": "x"}),
    ]


@pytest.mark.parametrize("types", [[int], [Nameless], {"x": "Point"}, [None]])
def test_only_dataclasses_and_enumerations_are_registered(types: Any) -> None:
    with pytest.raises(ConfigError, match="classes, or a dict of names and classes, got 5"):
        Codec(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected a dataclass or an enumeration"):
        Codec(types)


def test_two_types_of_one_name_are_refused() -> None:
    other: Any = dataclass(type("Point", (), {}))
    with pytest.raises(ConfigError, match="two types have the name 'Point'"):
        Codec([Point, other])


def test_the_encoding_is_that_of_version_1() -> None:
    value = [None, True, -1, 1.5, "a", b"b", (1,), {2}, 2**64, date(2026, 1, 2), UUID(int=3)]
    assert CODEC.encode(value).hex() == (
        "9bc0c3ffcb3ff8000000000000a161c40162"  # up to the bytes
        "d5019101d5029102"  # the tuple, the set
        "c70904010000000000000000"  # 2**64
        "c70a06323032362d30312d3032"  # the date
        "d80a00000000000000000000000000000003"  # the UUID
    )
