"""The bounds of windows of whole days of a zone: the midnights of its clock.

A day begins at the first instant at which the zone's clock shows its date's midnight. Where the
clock jumps over midnight, the day begins with the jump. Where midnight comes twice, it begins with
the first one. A day that is skipped has no length. So days may have 23 or 25 hours.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from callboard.core.text import safe_repr
from callboard.rows.instants import in_zone, zone_of
from callboard.streams.errors import GraphError

_DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)
_MONDAY = date(1970, 1, 5)


class LocalDays:
    """The bounds of windows of `size` days, each beginning `step` days after the one before.

    See `Bounds`. A bound is an instant in UTC. `origin` is a date at which a window begins, or its
    midnight; 0 stands for a Monday.
    """

    def __init__(self, zone: Any, origin: Any, size: Any, step: Any) -> None:
        self.zone = _zone(zone)
        self.size, self.step = _days("size", size), _days("step", step)
        self.origin = self._date(origin)

    @property
    def overlap(self) -> int:
        """In how many windows a row may be."""
        return -(-self.size // self.step)

    def start(self, number: int) -> datetime:
        """Return where a window begins."""
        return _midnight(self.zone, self.origin + number * self.step * _DAY)

    def end(self, number: int) -> datetime:
        """Return where it ends."""
        return _midnight(self.zone, self.origin + (number * self.step + self.size) * _DAY)

    def latest(self, time: Any) -> int:
        """Find the latest window that begins at an instant or before. Raises ValueError."""
        if zone_of(time) is None:
            raise ValueError(
                f"windows of days in {self.zone} expect times with a zone, got {safe_repr(time)}"
            )
        try:
            days: int = (in_zone(time, self.zone).date() - self.origin).days
            number = days // self.step
            while self.start(number) > time:
                number -= 1
            while self.start(number + 1) <= time:
                number += 1
        except OverflowError as error:
            raise ValueError(f"the calendar has no window for {safe_repr(time)}") from error
        return number

    def said(self, bound: datetime) -> Any:
        """Return a bound as users get it."""
        return in_zone(bound, self.zone)

    def _date(self, origin: Any) -> date:
        if isinstance(origin, int) and not isinstance(origin, bool) and origin == 0:
            return _MONDAY
        if isinstance(origin, datetime):
            local = origin if zone_of(origin) is None else in_zone(origin, self.zone)
            wall = local.replace(tzinfo=None, fold=0)
            if wall == wall and _wall(_midnight(self.zone, wall.date()), self.zone) == wall:
                return wall.date()
        elif isinstance(origin, date):
            return origin
        raise GraphError(
            f"the origin of windows of days in {self.zone} must be a date, or the time at which "
            f"it begins there, got {safe_repr(origin)}"
        )


def _begin(zone: tzinfo, day: date) -> datetime:
    """Return the first instant, in UTC, at which a zone's clock shows a date's midnight or more."""
    wall = datetime(day.year, day.month, day.day)
    first = wall.replace(tzinfo=zone).astimezone(UTC)
    if _wall(first, zone) == wall:
        return first
    # The clock jumps over it. By its offset after the jump midnight is before that, by the one
    # before it after.
    before = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    while first - before > _TICK:
        middle = before + (first - before) // 2
        if _wall(middle, zone) < wall:
            before = middle
        else:
            first = middle
    return first


_midnight = lru_cache(maxsize=4096)(_begin)


def _wall(instant: datetime, zone: tzinfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _days(name: str, length: Any) -> int:
    if isinstance(length, timedelta) and length > timedelta(0) and not length % _DAY:
        return length // _DAY
    raise GraphError(f"the {name} of windows in a zone must be whole days, got {safe_repr(length)}")


def _zone(zone: Any) -> tzinfo:
    """Return a zone by its name, or itself."""
    if isinstance(zone, str):
        try:
            return ZoneInfo(zone)
        except (LookupError, ValueError, OSError) as error:
            raise GraphError(f"there is no zone {zone!r} here") from error
    # A zone of pytz shows another offset than the one in which a clock stands.
    if isinstance(zone, tzinfo) and not hasattr(zone, "localize"):
        return zone
    raise GraphError(f"zone must be the name of a zone or a ZoneInfo, got {safe_repr(zone)}")
