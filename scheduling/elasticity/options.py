"""The options of the elastic thread level, checked when they are given."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.scheduling.elasticity.measurement import Strategy
from callboard.scheduling.elasticity.rates import Rates
from callboard.scheduling.elasticity.remembered import Remembered
from callboard.scheduling.elasticity.trends import Trends

STRATEGIES = ("rates", "trends")


@dataclass(frozen=True)
class Elasticity:
    """How a system finds the number of its workers. Raises ConfigError."""

    strategy: str = "rates"
    """"rates" computes the level and verifies it; "trends" is that of Schneider and Wu (2017)."""
    period: float = 1.0
    """Seconds from one decision to the next."""
    sensitivity: float = 0.05
    """The difference of two throughputs that "trends" takes for one, from 0 to 1."""
    ceiling: float = 0.8
    """The share of the machine's processor time above which no worker is added."""
    remember: str | os.PathLike[str] | None = None
    """The file in which "rates" keeps what it has measured, for later runs."""

    def __post_init__(self) -> None:
        checks.one_of("elasticity's strategy", self.strategy, STRATEGIES, error=ConfigError)
        checks.seconds("elasticity's period", self.period, zero=False, error=ConfigError)
        _share("elasticity's sensitivity", self.sensitivity)
        _share("elasticity's ceiling", self.ceiling)
        if self.remember is not None and not isinstance(self.remember, str | os.PathLike):
            raise ConfigError(
                f"the file that elasticity remembers in is a path, not {safe_repr(self.remember)}"
            )

    def make(self, least: int, most: int) -> Strategy:
        """Return a new strategy for so many workers. Raises ConfigError for a file not its own."""
        if self.strategy == "trends":
            return Trends(least, most, self.sensitivity, self.ceiling)
        memory = None if self.remember is None else Remembered(self.remember)
        return Rates(least, most, self.ceiling, memory)


def _share(what: str, value: Any) -> None:
    checks.finite(what, value, error=ConfigError)
    if not 0 <= value <= 1:
        raise ConfigError(f"{what} is a share, at least 0 and at most 1, not {safe_repr(value)}")
