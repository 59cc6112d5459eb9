"""Conversion of the values of an Arrow column to numbers, which order and compare rows."""

from __future__ import annotations

import datetime
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from callboard.core.text import safe_repr

_DAY = 86_400 * 10**9


@dataclass(frozen=True)
class Scale:
    """The numbers of a column: 64-bit integers for integers and times, doubles for floats.

    Two columns can be compared if they are of one sort: integers of any width, floats of any width,
    timestamps with a zone, whichever it is. Times count microseconds, or in a sort of their own
    nanoseconds, and dates days.
    """

    name: str
    """"integers", "floats", or the type of times."""
    sort: str
    type: Any = None
    """The type of times that count so; None for other numbers."""
    unit: int | None = None
    """The unit of times, in nanoseconds."""
    origin: Any = None
    """The time 0 in Python; None for times of day, which have no place in an order."""

    @property
    def dtype(self) -> type[np.generic]:
        """The type of the numbers."""
        return np.float64 if self.name == "floats" else np.int64

    def numbers_of(self, column: Any) -> Any:
        """Return the values of a column as a NumPy array; null is 0.

        Raises ArrowInvalid for values that need more than 64 bits.
        """
        import pyarrow as pa

        if self.unit is None:
            column = column.cast(pa.float64() if self.name == "floats" else pa.int64())
        else:
            column = column.cast(self.type)
            column = column.view(pa.int32() if self.type.bit_width == 32 else pa.int64())
        if column.null_count:
            column = column.fill_null(0)
        return column.to_numpy().astype(self.dtype, copy=False)

    def length(self, what: str, length: Any) -> Any:
        """Return the greatest number that is no longer than a length. Raises TypeError."""
        if self.unit is not None:
            if not isinstance(length, datetime.timedelta):
                raise TypeError(
                    f"{what} must be a timedelta, as times are {self.name}, got {safe_repr(length)}"
                )
            return _nanoseconds(length) // self.unit
        if isinstance(length, datetime.timedelta):
            raise TypeError(f"{what} must be a number, as values are {self.name}, got {length!r}")
        if self.name == "integers":
            return math.floor(length)
        try:
            nearest = float(length)
        except OverflowError:
            return sys.float_info.max
        return nearest if nearest <= length else math.nextafter(nearest, 0)

    def point(self, time: Any) -> Any:
        """Return the least number that is not before a time, of a watermark. Raises TypeError."""
        try:
            if self.name == "floats":
                return float(time)
            if self.name == "integers":
                return math.copysign(math.inf, time) if abs(time) == math.inf else math.ceil(time)
            past = time - self.origin
            if isinstance(past, datetime.timedelta):
                return -(-_nanoseconds(past) // self.unit)  # type: ignore[operator]
        except TypeError:
            pass
        raise TypeError(
            f"a watermark must be a time like those of rows, {self.name}, got {safe_repr(time)}"
        )

    def time(self, number: Any) -> Any:
        """Return the latest time in Python that is not after a number. OverflowError: none is."""
        if self.unit is None:
            return number
        return self.origin + datetime.timedelta(microseconds=number * self.unit // 1_000)


def scale_of(arrow: Any) -> Scale | None:
    """Find the scale of an Arrow type; None: its values are no numbers."""
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_integer(arrow):
        return Scale("integers", "integers")
    if a.is_floating(arrow):
        return Scale("floats", "floats")
    if a.is_date(arrow):
        return Scale(str(arrow), "dates", pa.date32(), _DAY, datetime.date(1970, 1, 1))
    if not a.is_temporal(arrow) or a.is_interval(arrow):
        return None
    unit, said, length = ("ns", " in ns", 1) if arrow.unit == "ns" else ("us", "", 1_000)
    if a.is_duration(arrow):
        zero: Any = datetime.timedelta(0)
        return Scale(str(arrow), f"durations{said}", pa.duration(unit), length, zero)
    if a.is_time(arrow):
        return Scale(str(arrow), f"times of day{said}", pa.time64(unit), length)
    zero = datetime.datetime(1970, 1, 1)
    if arrow.tz is None:
        return Scale(str(arrow), f"timestamps{said}", pa.timestamp(unit), length, zero)
    sort, zoned = f"timestamps{said} with a zone", pa.timestamp(unit, arrow.tz)
    return Scale(str(arrow), sort, zoned, length, zero.replace(tzinfo=datetime.UTC))


def _nanoseconds(delta: datetime.timedelta) -> int:
    """Return a length in nanoseconds, which those of pandas have."""
    seconds = delta.days * 86_400 + delta.seconds
    return seconds * 10**9 + delta.microseconds * 1_000 + getattr(delta, "nanoseconds", 0)
