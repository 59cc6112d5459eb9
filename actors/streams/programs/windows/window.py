"""Windows: which rows belong together, and when they are emitted.

A window by count takes a number of rows, as they come. A window by event time takes the rows whose
times lie from its start up to, not including, its end. It closes at a watermark that has come to
its end, or at the end of the stream. Where rows come in order of time (`ordered=True`) each row is
a watermark as well, for the rows with its key. A row whose time is NaN or infinite, or so large
that its type cannot tell neighbouring windows apart, is an error of that row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import timedelta, tzinfo
from typing import Any, Generic, NamedTuple, TypeVar

from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.streams.checks import check_count, check_flag, check_function
from callboard.streams.errors import GraphError
from callboard.streams.programs.windows.bounds import Bounds
from callboard.streams.programs.windows.local_days import LocalDays

T = TypeVar("T")
V = TypeVar("V")

MOST_WINDOWS = 100_000
"""In how many windows a row may be. Each of them keeps it: that many take a row some 10 ms."""

MOST_DAYS = 1_000_000
"""The calendar has no 10,000 years."""


class Window(NamedTuple, Generic[V]):
    """A closed window: its bounds, and the function's result for its rows.

    The bounds of a window by count are the numbers of its first row and of the row after its last,
    counted from 0 for each key.
    """

    start: Any
    end: Any
    value: V


@dataclass(frozen=True, kw_only=True)
class _Regular:
    by: Callable[[Any], Any] | None = None
    origin: Any = 0
    ordered: bool = False
    zone: str | tzinfo | None = None

    __dir__ = public_names

    def _check(self, size: Any, step: Any) -> None:
        """Check that windows can be laid out, and how many overlap."""
        check_flag("ordered", self.ordered)
        if self.by is not None:
            check_function("by", self.by)
        elif self.ordered:
            raise GraphError("ordered=True is about time, so it needs by=, the time of a row")
        elif self.zone is not None:
            raise GraphError("zone= is about time, so it needs by=, the time of a row")
        _check_extent("size", size, self.by)
        _check_extent("step", step, self.by)
        overlap = self._laid_out(size, step).overlap
        if overlap > MOST_WINDOWS:
            raise GraphError(
                f"with size={safe_repr(size)} and step={safe_repr(step)} each row would be in "
                f"{overlap:,} windows, and at most {MOST_WINDOWS:,} are allowed"
            )

    def _laid_out(self, size: Any, step: Any) -> Bounds | LocalDays:
        if self.zone is not None:
            return LocalDays(self.zone, self.origin, size, step)
        try:
            bounds = Bounds(self.origin, size, step)
            fits = self.origin - self.origin == step - step and not isinstance(self.origin, bool)
            fits = fits and bounds.origin < bounds.start(1) <= bounds.start(1) + size
        except (TypeError, ArithmeticError, ValueError):
            fits = False
        if not fits:
            lacks = isinstance(size, timedelta) and type(self.origin) is int and self.origin == 0
            raise GraphError(
                f"windows of {safe_repr(size)} that begin {safe_repr(step)} after each other "
                f"cannot be laid out from the origin {safe_repr(self.origin)}"
                + (": give origin=, a datetime at which one starts" if lacks else "")
            )
        return bounds


@dataclass(frozen=True)
class TumblingWindow(_Regular):
    """Consecutive windows of `size` rows, or with `by`, of a length of time.

    Args:
        size: The number of rows, or the length of time. If times are `datetime`s, it is a
            `timedelta`, and a window of a day has 24 hours, even when clocks change.
        days: Instead of `size`, a number of local days in `zone`, from midnight to midnight, so a
            day may have 23 or 25 hours.
        by: The time of a row.
        origin: A time at which a window starts. Window n starts at `origin + n * size`, as
            computed, and ends where window n + 1 starts. If times are `datetime`s, it is a
            `datetime`, in whose zone the bounds are. With `days`, it is a date; by default, weeks
            start on Mondays.
        ordered: Rows arrive in order of time, so no watermarks are needed.
        zone: A name or a `ZoneInfo`.
    """

    size: Any = None
    days: int | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.days is not None:
            size = timedelta(days=check_count("days", self.days, most=MOST_DAYS))
            if self.size not in (None, size) or self.zone is None:
                raise GraphError("days= replaces the size, and needs zone=, the zone of these days")
            object.__setattr__(self, "size", size)
        self._check(self.size, self._step)

    @property
    def _step(self) -> Any:
        return self.size


@dataclass(frozen=True)
class SlidingWindow(_Regular):
    """Windows of `size`, each beginning `step` after the one before. See TumblingWindow.

    A row is in about `size / step` windows, at most 100,000. If `step` is larger than `size`, rows
    between two windows are in none, but are not late. With `zone`, both are `timedelta`s of whole
    days.
    """

    size: Any
    step: Any

    def __post_init__(self) -> None:
        self._check(self.size, self._step)

    @property
    def _step(self) -> Any:
        return self.step


@dataclass(frozen=True)
class SessionWindow:
    """Windows of rows that follow each other by less than `gap`; it ends `gap` after its last row.

    Bounds are in the zones of the first row's time and of the last's.

    Args:
        gap: The time without rows that ends a window.
        by: The time of a row.
        ordered: Rows arrive in order of time, so no watermarks are needed.
    """

    gap: Any
    by: Callable[[Any], Any]
    ordered: bool = False

    def __post_init__(self) -> None:
        check_flag("ordered", self.ordered)
        check_function("by", self.by)
        _check_extent("gap", self.gap, self.by)


def layout_of(windows: TumblingWindow | SlidingWindow) -> Bounds | LocalDays:
    """Return where windows by time begin and end."""
    return windows._laid_out(windows.size, windows._step)


def said(windows: TumblingWindow | SlidingWindow | SessionWindow) -> str:
    """Say a policy of windows in words: a function by its name, and nothing that is by default."""
    parts = []
    for each in fields(windows):
        value = getattr(windows, each.name)
        if not each.repr or value is each.default:
            continue
        name = getattr(value, "__name__", type(value).__name__) if callable(value) else None
        parts.append(f"{each.name}={name or safe_repr(value)}")
    return f"{type(windows).__name__}({', '.join(parts)})"


def _check_extent(name: str, value: Any, by: Any) -> None:
    if by is None:
        check_count(name, value)
        return
    if not _is_length(value, zero=False):
        raise GraphError(f"{name} must be a length of time above zero, got {safe_repr(value)}")


def delay_of(value: Any) -> Any:
    """Check how late rows may come, and return it; None for not at all. Raises GraphError."""
    if not _is_length(value, zero=True):
        raise GraphError(
            f"delay_threshold must be a length of time of zero or more, got {safe_repr(value)}"
        )
    return None if value == value - value else value


def _is_length(value: Any, *, zero: bool) -> bool:
    """Return whether a value is a finite difference of times, and above none, or (`zero`) none."""
    try:
        none = value - value  # NaN of an infinite length
        if isinstance(value, bool) or none != none:
            return False
        return bool(none < value < value + value) or (zero and bool(value == none))
    except (TypeError, ArithmeticError, ValueError):
        return False
