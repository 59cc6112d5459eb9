"""Datetimes with a zone are counted as instants, whatever their zone."""

import pickle
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from callboard.frequency import SpaceSaving

FIRST = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Paris"))  # is there twice
SECOND = FIRST.replace(fold=1)
KEYS = [FIRST, SECOND, SECOND.astimezone(ZoneInfo("America/New_York")), SECOND.astimezone(UTC), 7]


def counts(summary: SpaceSaving) -> list[tuple[object, int]]:
    return [(key.isoformat() if key != 7 else 7, count) for key, count, _ in summary]


EXPECTED = [("2026-10-25T02:30:00+01:00", 3), ("2026-10-25T02:30:00+02:00", 1), (7, 1)]


@pytest.mark.parametrize("first", [1, 4])
def test_moments_are_told_apart_and_handed_out_as_they_came(first: int) -> None:
    summary = SpaceSaving(0.01)
    for key in KEYS[:first]:
        summary.add(key)
    summary.update(KEYS[first:])
    assert counts(summary) == EXPECTED
    assert summary.estimate(SECOND).count == summary.estimate(SECOND.astimezone(UTC)).count == 3
    assert counts(pickle.loads(pickle.dumps(summary))) == EXPECTED


def test_moments_in_tuples_are_too() -> None:
    summary = SpaceSaving(0.01)
    summary.update([(key, "x") for key in KEYS])
    assert [(key[0], count) for key, count, _ in summary] == [(SECOND, 3), (FIRST, 1), (7, 1)]
    assert [key[0].fold for key, _, _ in summary if key[0] != 7] == [1, 0]


def test_summaries_of_moments_are_merged_by_them() -> None:
    mine, theirs = SpaceSaving(0.01), SpaceSaving(0.01)
    mine.update(KEYS[:2])
    theirs.update(KEYS[2:])
    mine.merge(theirs)
    assert sorted(count for _, count, _ in mine) == [1, 1, 3]
    assert mine.estimate(SECOND).count == 3
