"""The results that a benchmark's run returns."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """`operations` done in `seconds`; wrong unless `got` equals `want`.

    `usage.Watch` says what they took; without it, the harness has the whole process to go by.
    """

    operations: int
    seconds: float
    got: Any
    want: Any
    cpu: float | None = None  # seconds
    switches: float | None = None  # of context
    settled: float | None = None  # periods until the level of workers was found
    changes: float | None = None  # of the level, afterwards


@dataclass(frozen=True)
class Quantity:
    """A `value` that is no rate; wrong unless `got` equals `want`."""

    value: float
    got: Any
    want: Any
