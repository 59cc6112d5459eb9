"""The start of a system: from its configuration to the state that actors share, and the workers."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from functools import partial

from callboard._inside.receiving.event_loop import EventLoop
from callboard._inside.sending.runtime import Runtime
from callboard._inside.spawn import spawn
from callboard.actor import Actor
from callboard.core.errors import CallboardError, ConfigError
from callboard.core.text import did_you_mean, safe_repr
from callboard.dead_letters import DeadLetters
from callboard.diagnosis import name_of_work
from callboard.native import NativeActor
from callboard.scheduling.config import Config
from callboard.scheduling.elasticity.controller import Controller
from callboard.scheduling.team import Team
from callboard.scheduling.worker import WorkerThread
from callboard.timers import Timers


def make_runtime(config: Config, team: Team, timers: Timers, manual: bool) -> Runtime:
    """Make what the actors of a system share, as its configuration says."""
    letters = DeadLetters(config.name)
    runtime = Runtime(team, config.name, letters, timers, config, config.quantum, manual)
    runtime.placement = config.placement_policy()
    runtime.event_loop = EventLoop(config.name)
    runtime.spawner = partial(spawn, runtime)
    team.observe(config.monitoring, getattr(runtime.placement, "timed", False))
    team.time_slice = 0.0 if manual else config.time_slice  # a logical clock stands still
    return runtime


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
    least, elasticity = config.least_workers, config.elasticity
    try:
        team.set_level(least)
        if elasticity is not None:
            strategy = elasticity.make(least, config.workers)
            runs = partial(name_of_work, runtime)
            team.controller = Controller(
                team, strategy, elasticity.period, least, runs, config.name
            )
            team.controller.begin()
    except CallboardError:
        team.tell_stopping()
        raise


def check_classes(names: Iterable[str]) -> None:
    """Raise ConfigError for a name under `[classes]` that no class of actors has.

    A name alone is that of a class that exists by now; "module:Class" is imported.
    """
    for name in names:
        module, colon, _ = name.partition(":")
        if name in _known(colon) or (colon and _comes_later(module)):
            continue
        if colon:
            _import(name, module)
        if name not in _known(colon):
            hint = did_you_mean(name, _known(colon))
            later = "" if colon else f"; a class that is imported later is named 'module:{name}'"
            raise ConfigError(f"classes.{name}: there is no such class of actors{hint}{later}")


def _known(colon: str) -> set[str]:
    """Return the names of all classes of actors that exist, with their modules or without."""
    classes: list[type] = [*_subclasses(Actor), *_subclasses(NativeActor)]
    if not colon:
        return {one.__qualname__ for one in classes}
    return {f"{one.__module__}:{one.__qualname__}" for one in classes}


def _subclasses(base: type) -> Iterator[type]:
    derived: list[type] = base.__subclasses__()
    for one in derived:
        yield one
        yield from _subclasses(one)


def _comes_later(module: str) -> bool:
    """Tell whether a module is at work, and may define more behind the system that it makes."""
    found = sys.modules.get(module)
    return found is not None and (
        module == "__main__" or getattr(found.__spec__, "_initializing", False)
    )


def _import(name: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"classes.{name}: {error}") from error
    except Exception as error:
        raise ConfigError(
            f"classes.{name}: the module {module!r} cannot be imported: {safe_repr(error)}"
        ) from error
