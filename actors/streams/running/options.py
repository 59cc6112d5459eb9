"""Checks of a run's options: each raises ConfigError."""

from __future__ import annotations

from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.scheduling.config import Config
from callboard.scheduling.flow.heuristics import Heuristic, LastInPipeline
from callboard.scheduling.policies import choose_heuristic

_RIVALS = ("locked", "partitioned", "shared")


def heuristic(policy: Any, config: Config) -> Heuristic:
    """Return the run's heuristic: its own, or the one that the system's priority names."""
    if policy is None:
        return config.heuristic() or LastInPipeline()
    if isinstance(policy, Heuristic):
        policy._check()
        return policy
    chosen = choose_heuristic(policy)
    if chosen is None:
        raise ConfigError(f"a graph's policy is a heuristic, and {policy!r} is none")
    return chosen


def chosen_rivals(value: Any) -> list[str]:
    """Say what benchmarks measure the paper's structures against: rivals' names, with spaces."""
    names = value.split() if isinstance(value, str) else [value]
    return [checks.one_of("rivals", name, _RIVALS, error=ConfigError) for name in names]


def power_of_two(option: str, value: Any) -> int:
    """Check that an option is a power of two."""
    number = checks.whole(option, value, 1, 2**20, error=ConfigError)
    if number & (number - 1):
        raise ConfigError(f"{option} is a power of two, 2**20 at most, not {value!r}")
    return number


def short_time(option: str, value: Any) -> float:
    """Check that an option is a time of a second or less."""
    seconds = checks.seconds(option, value, zero=False, error=ConfigError)
    if seconds > 1:
        raise ConfigError(f"{option} is in seconds, above 0 and 1 at most, not {value!r}")
    return seconds
