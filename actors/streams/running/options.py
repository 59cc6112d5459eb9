"""Checks of what a run, and its calls, are given."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, cast

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.scheduling.config import Config
from callboard.scheduling.flow.heuristics import Heuristic
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.policies import choose_heuristic, choose_placement
from callboard.streams.planning.units import Unit
from callboard.streams.programs.program import Program

MOST_HOT = 1000  # each takes a hundred counters at each keyed operator


def heuristic(policy: Any, config: Config, units: Iterable[Unit]) -> Heuristic | None:
    """Return the run's heuristic: its own, or the one that the configuration names, if any.

    It chooses among dynamic operators; for others there is nothing to choose.
    """
    if policy is None:
        return config.graph_heuristic
    if isinstance(policy, Heuristic):
        policy._check()
        chosen = policy
    else:
        chosen = choose_heuristic(policy)
    _refuse_useless("policy", policy, "dynamic", units)
    return chosen


def threading(value: Any, config: Config) -> Model:
    """Return the run's threading model: its own, or the one that the configuration names."""
    if value is None:
        return config.graph_threading
    return cast("Model", checks.one_of("threading", value, MODELS, error=ConfigError))


def placement(value: Any, config: Config, units: Iterable[Unit]) -> PlacementPolicy:
    """Return what chooses the homes of assigned operators; others have none to choose."""
    chosen = choose_placement(config.graph_placement if value is None else value)
    _refuse_useless("placement", value, "assigned", units)
    return chosen


def _refuse_useless(option: str, value: Any, model: Model, units: Iterable[Unit]) -> None:
    models = {unit.model for unit in units}
    if value is not None and model not in models:
        raise ConfigError(
            f"{option} is for operators whose threading is {model!r}, and all of this graph are "
            f"{' or '.join(map(repr, sorted(models)))}: there is no use for {safe_repr(value)}"
        )


def hot_keys(most: Any, programs: Iterable[Program]) -> None:
    """Let all keyed operators count which keys come most often, if that is asked for."""
    most = checks.whole("hot_keys", most, 0, MOST_HOT, error=ConfigError)
    if most and sum(program.count_keys(most) for program in programs) == 0:
        raise ConfigError("hot_keys is for keyed operators in Python, and this graph has none")


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


def deadline(call: str, timeout: float | None) -> float | None:
    """Return when a call's timeout is over, on the monotonic clock. Raises as checks.timeout()."""
    seconds = checks.timeout(f"{call}'s timeout", timeout)
    return None if seconds is None else time.monotonic() + seconds
