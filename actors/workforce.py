"""The workers of a system, as its configuration says."""

from __future__ import annotations

from functools import partial

from callboard._inside.sending.runtime import Runtime
from callboard.core.errors import CallboardError
from callboard.diagnosis import name_of_work
from callboard.scheduling.config import Config
from callboard.scheduling.elasticity.controller import Controller
from callboard.scheduling.elasticity.rates import Elasticity
from callboard.scheduling.worker import WorkerThread


def start_workers(runtime: Runtime, config: Config) -> None:
    """Make all workers, start those of the first level, and what finds the level, if it may change.

    Raises CallboardError if there may be no more threads; those that did start end.
    """
    team = runtime.team
    for index in range(config.workers):
        name, core = f"{config.name}-{index}", config.core_of(index)
        WorkerThread(team, config.priority_policy(), config.quantum, name, core)
    shared = config.threading == "dynamic" and config.workers > 1
    if shared:
        team.let_steal()
    team.awaits_need = shared and team.token
    try:
        team.set_level(config.least_workers)
        if config.elasticity is not None:
            team.controller = controller = _controller(runtime, config, config.elasticity)
            controller.begin()
    except CallboardError:
        team.tell_stopping()
        raise


def _controller(runtime: Runtime, config: Config, elasticity: Elasticity) -> Controller:
    least = config.least_workers
    strategy = elasticity.make(least, config.workers)
    runs = partial(name_of_work, runtime)
    return Controller(runtime.team, strategy, elasticity.period, least, runs, config.name)
