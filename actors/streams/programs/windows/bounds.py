"""The bounds of windows by event time.

Windows are numbered, and a bound is computed from the number alone, so it has one value, however
the rows' times were rounded. A row is in the windows between whose bounds its time lies, by the
comparison that a reader of the bounds would make.
"""

from __future__ import annotations

import math
from typing import Any

from callboard.core.text import safe_repr
from callboard.rows.instants import in_zone, instant_of, zone_of

# The number that a division gives is wrong by no more than what three roundings move.
_TRIES = 8


class Bounds:
    """The bounds of windows of one size, each beginning one step after the one before.

    Window n begins at `origin + n * step`. It ends where window `n + steps` begins, `remainder`
    later if the step is no part of the size. So both bounds grow with the number, and no time lies
    between the end of a window and the start of one that follows it at once. Bounds and times are
    instants.
    """

    def __init__(self, origin: Any, size: Any, step: Any) -> None:
        self.origin, self.zone = instant_of(origin), zone_of(origin)
        self.step = step
        self.steps, self.remainder = _divide(size, step)

    @property
    def overlap(self) -> int:
        """In how many windows a row may be."""
        return self.steps + (self.remainder is not None)

    def start(self, number: int) -> Any:
        """Return where a window begins."""
        return self.origin + number * self.step

    def end(self, number: int) -> Any:
        """Return where it ends."""
        last = self.start(number + self.steps)
        return last if self.remainder is None else last + self.remainder

    def latest(self, time: Any) -> int:
        """Find the latest window that begins at a time or before. Raises ValueError."""
        cause = None
        try:
            number = int((time - self.origin) // self.step)
            for _ in range(_TRIES):
                start, after = self.start(number), self.start(number + 1)
                if not start < after or self.is_coarse(after):
                    break
                if start <= time < after:
                    return number
                number += 1 if after <= time else -1
        except TypeError:
            check_time(time)
            raise
        except (ArithmeticError, ValueError) as error:  # NaN, infinity, beyond a type
            cause = error
        check_time(time)
        raise ValueError(
            f"at the time {safe_repr(time)}, windows that begin every {safe_repr(self.step)} "
            "cannot be distinguished: numbers that large are not precise enough"
        ) from cause

    def said(self, bound: Any) -> Any:
        """Return a bound as users get it: in the origin's zone."""
        return in_zone(bound, self.zone)

    def is_coarse(self, bound: Any) -> bool:
        """Return whether floats around a bound are further apart than windows."""
        return isinstance(bound, float) and math.ulp(abs(bound) + abs(self.origin)) > self.step


def check_time(time: Any) -> None:
    """Refuse, by a ValueError, NaN, infinity, None and what else is no time, as that of a row."""
    try:
        is_finite = bool((time - time) == (time - time))
    except (ArithmeticError, TypeError):  # Decimals raise where floats give NaN
        is_finite = False
    if not is_finite:
        raise ValueError(f"the time of a row must be a point in time, got {safe_repr(time)}")


def _divide(size: Any, step: Any) -> tuple[int, Any]:
    """Return the number of steps in a size, and the remainder, or None.

    For floats, the nearest number of steps is meant where the difference is within that of
    rounding. 0.3 is three steps of 0.1, though three times the float 0.1 is more than the float
    0.3.
    """
    steps, remainder = divmod(size, step)
    if isinstance(remainder, float):
        nearest = round(size / step)
        if math.isclose(nearest * step, size, rel_tol=2.0**-50):
            return nearest, None
    return int(steps), remainder if remainder > remainder - remainder else None
