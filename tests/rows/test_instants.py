"""Aware datetimes, compared as instants."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from callboard.rows.instants import as_given, as_key, in_zone, instant_of, zone_of

PARIS = ZoneInfo("Europe/Paris")
FIRST = datetime(2026, 10, 25, 2, 30, tzinfo=PARIS)  # is there twice
SECOND = FIRST.replace(fold=1)


class Sale(NamedTuple):
    at: datetime
    amount: int


class NoZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> None:
        return None

    dst = tzname = utcoffset


class Odd(tuple[Any, ...]):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_the_two_moments_of_a_repeated_hour_are_an_hour_apart() -> None:
    assert FIRST == SECOND
    assert instant_of(SECOND) - instant_of(FIRST) == timedelta(hours=1)
    assert instant_of(FIRST) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_moments_in_tuples_and_lists_are_found() -> None:
    assert instant_of((1, (FIRST, "a"))) == (1, (instant_of(FIRST), "a"))
    assert instant_of([SECOND]) == [instant_of(SECOND)]
    assert instant_of(Sale(SECOND, 3)) == (instant_of(SECOND), 3)


@pytest.mark.parametrize(
    "value",
    [1, 0.5, "x", None, datetime(2026, 1, 1), (1, "a"), [2], Sale(datetime(2026, 1, 1), 1),
     datetime(2026, 1, 1, tzinfo=NoZone()), Odd([FIRST]), FIRST.astimezone(UTC)],
)  # fmt: skip
def test_values_without_a_moment_are_unchanged(value: Any) -> None:
    assert instant_of(value) is value
    assert as_key(value) is value


def test_tuples_that_are_too_deep_are_a_recursion_error() -> None:
    deep: Any = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(RecursionError):
        instant_of(deep)


def test_the_ends_of_the_calendar_are_those_of_utc() -> None:
    west, east = timezone(timedelta(hours=-5)), timezone(timedelta(hours=5))
    assert instant_of(datetime.max.replace(tzinfo=west)) == datetime.max.replace(tzinfo=UTC)
    assert instant_of(datetime.min.replace(tzinfo=east)) == datetime.min.replace(tzinfo=UTC)
    last = datetime.max.replace(tzinfo=UTC)
    assert in_zone(last, east) is last


def test_an_instant_is_said_in_a_zone_with_its_fold() -> None:
    for time in (FIRST, SECOND):
        said = in_zone(instant_of(time), zone_of(time))
        assert (said.isoformat(), said.fold, said.tzinfo) == (time.isoformat(), time.fold, PARIS)
    assert zone_of(datetime(2026, 1, 1)) is zone_of(5) is zone_of((FIRST,)) is None
    assert in_zone(5, None) == 5


def test_keys_are_told_apart_by_their_moments() -> None:
    same = FIRST.astimezone(ZoneInfo("America/New_York"))
    assert as_key(FIRST) == as_key(same) == as_key(FIRST.astimezone(UTC)) != as_key(SECOND)
    table = {as_key((FIRST, "a")): 1, as_key((SECOND, "a")): 2}
    assert table[as_key((same, "a"))] == 1
    assert [as_given(key) for key in table] == [(FIRST, "a"), (SECOND, "a")]
    assert [as_given(key)[0].fold for key in table] == [0, 1]


def test_a_key_without_a_hash_is_an_error() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        as_key([FIRST])
