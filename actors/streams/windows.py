"""Windows: which rows belong together, and when they are handed out.

A window by count takes a number of rows, as they come. A window by event time takes the rows whose
times lie from its start up to, not including, its end. It closes at a watermark that has come to
its end, or at the end of the stream. Where rows come in order of time (`ordered=True`) each row is
a watermark as well, for the rows with its key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from callboard.streams.checks import check_count, check_flag, check_function
from callboard.streams.errors import GraphError

T = TypeVar("T")
V = TypeVar("V")


class Window(NamedTuple, Generic[V]):
    """A closed window: its bounds, and what the function made of its rows.

    The bounds of a window by count are the numbers of its first row and of the one after its last,
    counted from 0 for each key.
    """

    start: Any
    end: Any
    value: V


@dataclass(frozen=True, kw_only=True)
class _Timed:
    by: Callable[[Any], Any] | None = None
    origin: Any = 0
    ordered: bool = False

    def _check_times(self) -> None:
        check_flag("ordered", self.ordered)
        if self.by is not None:
            check_function("by", self.by)
        elif self.ordered:
            raise GraphError("ordered=True is about time, so it needs by=, the time of a row")


@dataclass(frozen=True)
class Tumbling(_Timed):
    """Windows of `size` rows, one after the other; or with `by`, the time of a row, of `size` time.

    `origin` is where a window by time starts; the others lie before and after it. With times that
    are `datetime`s, `size` is a `timedelta` and `origin` a `datetime`.
    """

    size: Any

    def __post_init__(self) -> None:
        self._check_times()
        _check_extent("size", self.size, self.by)


@dataclass(frozen=True)
class Sliding(_Timed):
    """Windows of `size`, each beginning `step` after the one before. See Tumbling."""

    size: Any
    step: Any

    def __post_init__(self) -> None:
        self._check_times()
        _check_extent("size", self.size, self.by)
        _check_extent("step", self.step, self.by)


@dataclass(frozen=True)
class Session:
    """Windows of rows that follow each other by less than `gap`; it ends `gap` after its last row.

    `by` is the time of a row.
    """

    gap: Any
    by: Callable[[Any], Any]
    ordered: bool = False

    def __post_init__(self) -> None:
        check_flag("ordered", self.ordered)
        check_function("by", self.by)
        _check_extent("gap", self.gap, self.by)


def _check_extent(name: str, value: Any, by: Any) -> None:
    if by is None:
        check_count(name, value)
        return
    try:
        positive = value > type(value)()
    except TypeError:
        positive = False
    if not positive:
        raise GraphError(f"{name} is a length of time, and more than none, not {value!r}")
