"""Zones, the moments at which their clocks change, and UTC, for tests of local time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from callboard.streams import Watermark

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

CHANGES = {
    "Europe/Paris": ["2026-10-25T01:00", "2026-03-29T01:00"],
    "Europe/Dublin": ["2026-10-25T01:00", "2026-03-29T01:00"],  # its winter is the exception
    "Australia/Lord_Howe": ["2026-04-04T15:00", "2026-10-03T15:30"],  # half an hour
    "Pacific/Apia": ["2011-12-30T10:00", "2012-03-31T14:00"],  # a day that is skipped
    "America/New_York": ["2026-11-01T06:00", "2026-03-08T07:00"],
    "America/Sao_Paulo": ["2018-02-18T02:00", "2018-11-04T03:00"],  # at midnight
    "America/Havana": ["2026-11-01T05:00", "2026-03-08T05:00"],  # midnight comes twice
    "America/St_Johns": ["2010-11-07T02:31", "2010-03-14T03:31"],  # a minute past midnight
    "Africa/Casablanca": ["2026-02-15T02:00", "2026-03-22T02:00"],
}
"""Zones, and moments in UTC at which their clocks go back, and forward."""

PARIS = ZoneInfo("Europe/Paris")
NEW_YORK = ZoneInfo("America/New_York")
AUTUMN = datetime(2026, 10, 25, 0, tzinfo=UTC)  # 02:00 in Paris, for the first time
SPRING = datetime(2026, 3, 29, 0, tzinfo=UTC)  # 01:00 in Paris

changes = st.sampled_from(
    [
        (ZoneInfo(name), datetime.fromisoformat(text).replace(tzinfo=UTC))
        for name, texts in CHANGES.items()
        for text in texts
    ]
)
"""A zone, and a moment at which its clock is changed."""


def said(value: Any, zone: Any) -> Any:
    """Say the datetimes in rows and watermarks in a zone."""
    if isinstance(value, datetime):
        return value.astimezone(zone)
    if isinstance(value, Watermark):
        return Watermark(said(value.time, zone))
    if isinstance(value, dict):
        return {key: said(each, zone) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(said(each, zone) for each in value))
    if isinstance(value, list | tuple):
        return type(value)(said(each, zone) for each in value)
    return value


def zones_in(value: Any) -> set[Any]:
    """List the zones of all datetimes in outputs."""
    if isinstance(value, datetime):
        return {value.tzinfo}
    if isinstance(value, dict):
        value = [*value, *value.values()]
    return set().union(*map(zones_in, value)) if isinstance(value, list | tuple) else set()
