"""Predictions of a run's throughput if one of its operators were faster."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from callboard.core.handles import public_names
from callboard.core.markup import paragraph, table

_LARGE = 0.1
"""An unsure answer with a larger uncertainty says nothing."""
_HEADER = ("operator", "gain", "", "rows/s")


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The result of `run.what_if()`: what the whole run would gain. Its text is a sentence.

    `baseline` and `predicted` are numbers of rows sent per second. `gain` is a fraction: 0.1 is 10%
    more rows per second. It is the median of `gains`, one for each pair of periods. The true gain
    is within `uncertainty` of it with a probability of about 90%.
    """

    operator: str
    faster: float
    baseline: float
    gain: float
    uncertainty: float
    gains: tuple[float, ...]

    __dir__ = public_names

    @property
    def predicted(self) -> float:
        """The rows per second that the run would process."""
        return self.baseline * (1.0 + self.gain)

    @property
    def is_sure(self) -> bool:
        """Whether the gain exceeds its uncertainty."""
        return abs(self.gain) > self.uncertainty

    def __repr__(self) -> str:
        return f"If {self.operator!r} took {self.faster:.0%} less time, {self._words()}"

    def _words(self) -> str:
        if self.gain == float("inf"):
            return "the run would do any number of rows: nothing else takes time."
        within = f"{self.gain:+.1%} ± {self.uncertainty:.1%}"
        if not self.is_sure and self.uncertainty > _LARGE:
            return (
                f"it is not clear yet what the run would do instead of {self.baseline:,.0f} rows/s "
                f"({within}): ask again with more `seconds`."
            )
        if not self.is_sure:
            return f"the run would do about the same {self.baseline:,.0f} rows/s ({within})."
        return (
            f"the run would do {self.predicted:,.0f} rows/s instead of {self.baseline:,.0f} "
            f"({within})."
        )


class WhatIfs(tuple[WhatIf, ...]):
    """The answers for all operators, the largest gain first. The text is a table."""

    __slots__ = ()

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (one.operator, f"{one.gain:+.1%}", f"± {one.uncertainty:.1%}", f"{one.predicted:,.0f}")
            for one in self
        ]

    def __repr__(self) -> str:
        rows = [_HEADER, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *cells in rows:
            right = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *right]))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the text as a table, for notebooks."""
        faster = f"{self[0].faster:.0%}" if self else ""
        return paragraph(f"if an operator took {faster} less time") + table(
            _HEADER, self._cells(), texts=[0]
        )


class Period(NamedTuple):
    """Rows, and the seconds that they took, without those in which others were slowed down."""

    rows: float
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a second; infinite if there is no time left."""
        return self.rows / self.seconds if self.seconds > 0 else float("inf")


def compared(name: str, faster: float, plain: Sequence[Period], fast: Sequence[Period]) -> WhatIf:
    """Compare each period in which an operator seemed faster with those before and after it."""
    gains = tuple(
        one.rate / ((before.rate + after.rate) / 2) - 1.0
        for one, before, after in zip(fast, plain[:-1], plain[1:], strict=True)
    )
    gain = statistics.median(gains)
    return WhatIf(
        operator=name,
        faster=faster,
        baseline=statistics.median(one.rate for one in plain),
        gain=gain,
        uncertainty=_uncertainty(gains, gain),
        gains=gains,
    )


def _uncertainty(gains: Sequence[float], median: float) -> float:
    """Return the distance from the median to the second smallest or largest gain, the larger one.

    The true median of 8 lies between these with a probability of 93%, however they are distributed.
    """
    ordered = sorted(gains)
    low, high = ordered[1:2] or ordered, ordered[-2:-1] or ordered
    return max(median - low[0], high[0] - median) if median != float("inf") else 0.0
