"""Checks of the options of runs, and of their calls."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.scheduling.config import Config
from callboard.scheduling.flow.heuristics import Heuristic
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.policies import choose_heuristic, choose_placement
from callboard.streams.checks import MOST
from callboard.streams.planning.pipelines import Pipeline, pipelines_of
from callboard.streams.planning.plan import Plan
from callboard.streams.programs.program import Program

MOST_HOT = 1000  # each takes a hundred counters at each keyed operator


@dataclass(frozen=True)
class RunSettings:
    """The checked options of a run, and the pipelines of its plan by its threading model."""

    pipelines: Sequence[Pipeline]
    placement: PlacementPolicy
    """Chooses the workers of assigned operators."""
    heuristic: Heuristic | None
    """Chooses among dynamic operators; None: the configuration has none, either."""
    window: int
    time_slice: float
    markers: int


def settings(
    plan: Plan,
    config: Config,
    *,
    threading: Any,
    placement: Any,
    policy: Any,
    window: int,
    time_slice: float,
    markers: int,
) -> RunSettings:
    """Check options of `ActorSystem.run`; the configuration has those that are None."""
    model = config.graph_threading
    if threading is not None:
        model = cast("Model", checks.one_of("threading", threading, MODELS, error=ConfigError))
    pipelines = pipelines_of(plan.operators, model)
    chosen = choose_placement(config.graph_placement if placement is None else placement)
    _refuse_useless("placement", placement, "assigned", pipelines)
    heuristic = config.graph_heuristic
    if policy is not None:
        if isinstance(policy, Heuristic):
            policy._check()
        heuristic = policy if isinstance(policy, Heuristic) else choose_heuristic(policy)
        _refuse_useless("policy", policy, "dynamic", pipelines)
    return RunSettings(
        pipelines,
        chosen,
        heuristic,
        _power_of_two("window", window),
        _short_time("time_slice", time_slice),
        checks.whole("markers", markers, 0, MOST, error=ConfigError),
    )


def _refuse_useless(option: str, value: Any, model: Model, pipelines: Iterable[Pipeline]) -> None:
    models = {pipeline.model for pipeline in pipelines}
    if value is not None and model not in models:
        raise ConfigError(
            f"{option} is for operators whose threading is {model!r}, and all of this graph are "
            f"{' or '.join(map(repr, sorted(models)))}, so {safe_repr(value)} has no effect"
        )


def hot_keys(most: Any, programs: Iterable[Program]) -> None:
    """Let all keyed operators count which keys come most often, if that is asked for."""
    most = checks.whole("hot_keys", most, 0, MOST_HOT, error=ConfigError)
    if most and sum(program.count_keys(most) for program in programs) == 0:
        raise ConfigError("hot_keys is for keyed operators in Python, and this graph has none")


def _power_of_two(option: str, value: Any) -> int:
    """Check that an option is a power of two."""
    number = checks.whole(option, value, 1, 2**20, error=ConfigError)
    if number & (number - 1):
        raise ConfigError(f"{option} must be a power of two up to 2**20, got {value!r}")
    return number


def _short_time(option: str, value: Any) -> float:
    """Check that an option is a time of a second or less."""
    seconds = checks.seconds(option, value, zero=False, error=ConfigError)
    if seconds > 1:
        raise ConfigError(
            f"{option} must be a number of seconds above 0 and at most 1, got {value!r}"
        )
    return seconds


def deadline(call: str, timeout: float | None) -> float | None:
    """Return when a call's timeout is over, on the monotonic clock. Raises as checks.timeout()."""
    seconds = checks.timeout(f"{call}'s timeout", timeout)
    return None if seconds is None else time.monotonic() + seconds
