"""A system's settings, from code and from a configuration.

The configuration, a dict or a TOML file, overrides the settings in code, so that operators can tune
a program without changing its code. All settings are checked when they are loaded. Each error is a
ConfigError that states the setting, its value, its place, and the possible values.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.core.threads.cores import usable_cores
from callboard.scheduling.elasticity.rates import Elasticity
from callboard.scheduling.flow.heuristics import Heuristic
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.policies import choose_heuristic, choose_placement, choose_priority
from callboard.scheduling.priority import ReadyOrder
from callboard.scheduling.tracing.flight_recorder import FlightRecorder, check_trace

MONITORING = ("off", "times", "mailboxes", "channels", "workers")
COUNTING = MONITORING[2:]
CONTEXTS = ("own", "sender")
THREADING = ("dynamic", "assigned")
TUNABLE = ("placement", "priority", "mailbox", "context", "dedicated", "supervision")
# Each worker is a thread: more workers than cores are only for experiments.
MOST_WORKERS = 1024
LEAST_SHARED_MEMORY = 64 << 10

Source = Mapping[str, Any] | str | os.PathLike[str] | None


@dataclass(frozen=True)
class Config:
    """The settings of one system, made by `Config.load`."""

    name: str = "callboard"
    workers: int = 1
    least_workers: int = 1
    processes: int | str = 0
    shared_memory: int = 128 << 20
    elasticity: Elasticity | None = None
    threading: str = "assigned"
    quantum: int = 64
    time_slice: float = 0.005
    monitoring: str = "off"
    monitored: tuple[type | str, ...] | None = None
    trace: str | FlightRecorder | None = None
    observable: bool = False
    cpu_affinity: bool | tuple[int, ...] = False
    drain_timeout: float = 30.0
    context: str = "own"
    placement: Any = "round_robin"
    priority: Any = "fifo"
    streams: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    actors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _placements: dict[Any, PlacementPolicy] = field(default_factory=dict, repr=False, compare=False)
    _met: set[str] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def load(
        cls,
        config: Source | Config = None,
        *,
        mailbox: Callable[..., Any] = dict,
        supervision: Callable[..., Any] = dict,
        **keywords: Any,
    ) -> Config:
        """Merge the settings in code with a configuration, which has precedence.

        Args:
            config: a dict, the path of a TOML file, or a Config, which is used unchanged.
            mailbox: makes a mailbox of the keys of a `mailbox` table.
            supervision: likewise, for a `supervision` table.
            keywords: the settings in code; None means "not given".

        Raises:
            ConfigError: a setting is wrong.
        """
        if isinstance(config, Config):
            return config
        given = {key: value for key, value in keywords.items() if value is not None}
        checked = _placed({key: _check(key, value, "") for key, value in given.items()}, "")
        where = ""
        if config is not None and not isinstance(config, Mapping):
            where = f" in {os.fspath(config)}" if isinstance(config, str | os.PathLike) else ""
            config = read_file(config)
        owned = {key: _check(key, value, where) for key, value in (config or {}).items()}
        checked |= _placed(owned, where)
        if checked.get("threading") == "dynamic":
            checked.pop("placement", None)  # the code has one, and the configuration excludes it
        checked.setdefault("threading", "dynamic")
        checked |= _range_of_workers(checked, where)
        if "trace" in checked and checked.get("monitoring", "off") == "off":
            checked["monitoring"] = "times"  # a trace is made of records
        makers = {"mailbox": mailbox, "supervision": supervision}
        for table in ("classes", "actors"):
            checked[table] = {
                name: _check_tuning(f"{table}.{name}", options, where, makers)
                for name, options in checked.get(table, {}).items()
            }
        for name in checked["actors"]:
            _check_actor(name, where)
        return cls(**checked)

    def placement_policy(self, value: Any = None) -> PlacementPolicy:
        """Return the policy that `value` names, by default the system's. Raises ConfigError.

        The same name with the same options gives the same object, whose counts go on.
        """
        value = self.placement if value is None else value
        if isinstance(value, PlacementPolicy):
            return value
        key = repr(sorted(value.items())) if isinstance(value, Mapping) else value
        try:
            policy = self._placements.get(key)
        except TypeError:  # not hashable, so it names no policy; choose_placement() says so
            return choose_placement(value)
        return policy or self._placements.setdefault(key, choose_placement(value))

    def priority_policy(self) -> ReadyOrder:
        """Return a new instance of the system's policy: each worker has its own."""
        return choose_priority(self.priority)

    @property
    def graph_threading(self) -> Model:
        """The threading model of graphs, by default."""
        model: Model = self.streams.get("threading", "dynamic")
        return model

    @property
    def graph_heuristic(self) -> Heuristic | None:
        """A new heuristic of the configuration, if it names one: the default of graphs."""
        named = self.streams.get("policy")
        return None if named is None else choose_heuristic(named)

    @property
    def graph_placement(self) -> Any:
        """The placement of `assigned` operators, by default."""
        return self.streams.get("placement", "round_robin")

    @property
    def counted(self) -> bool:
        """Whether every mailbox counts its messages, for monitoring or for the priority policy."""
        return self.monitoring in COUNTING or self.priority_policy()._counts_messages()

    def is_monitored(self, actor_class: type) -> bool:
        """Whether traces have the dispatches of actors of this class."""
        if self.monitored is None:
            return True
        for base in actor_class.__mro__:
            names = base, base.__qualname__, f"{base.__module__}:{base.__qualname__}"
            if any(name in self.monitored for name in names):
                return True
        return False

    @property
    def tuned(self) -> bool:
        """Whether there are options for some actors: see `spawn_options`."""
        return bool(self.classes or self.actors)

    def spawn_options(self, actor_class: type, name: str | None) -> dict[str, Any]:
        """Return the configuration's options for an actor, which have precedence over its spawn's.

        An entry of `actors` is for the actor with that name. It has precedence over one of
        `classes`, which is for a class's name, or "module:Class".
        """
        kind = actor_class.__qualname__
        found: dict[str, Any] = {}
        for table, key in (
            ("classes", kind),
            ("classes", f"{actor_class.__module__}:{kind}"),
            ("actors", name),
        ):
            options = getattr(self, table).get(key)
            if options is not None:
                self._met.add(f"{table}.{key}")
                found |= options
        return found

    @property
    def unmet(self) -> tuple[str, ...]:
        """The entries of `classes` and `actors` that no spawn has used."""
        entries = [
            f"{table}.{key}" for table in ("classes", "actors") for key in getattr(self, table)
        ]
        return tuple(entry for entry in entries if entry not in self._met)

    def core_of(self, index: int) -> int | None:
        """Return the core that worker `index` is pinned to, or None."""
        if self.cpu_affinity is False:
            return None
        cores = sorted(os.sched_getaffinity(0)) if self.cpu_affinity is True else self.cpu_affinity
        return cores[index % len(cores)]


def read_file(path: Any) -> dict[str, Any]:
    """Read a configuration from a TOML file; the settings in it are not checked yet.

    Raises ConfigError.
    """
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(
            f"expected a dict or the path of a TOML file as config, got {safe_repr(path)}"
        )
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(
            f"the configuration {os.fspath(path)!r} cannot be read: {error.strerror}"
        ) from error
    except ValueError as error:  # TOML's or UTF-8's
        raise ConfigError(f"the configuration {os.fspath(path)!r} is not TOML: {error}") from error


def _placed(checked: dict[str, Any], where: str) -> dict[str, Any]:
    """Add the threading that a placement policy needs. Raises ConfigError if it is dynamic."""
    if "placement" not in checked:
        return checked
    if checked.get("threading") == "dynamic":
        raise ConfigError(
            f"placement is {safe_repr(checked['placement'])}{where}, and threading is 'dynamic': "
            "there only an actor's own spawn() can give it a placement"
        )
    return {**checked, "threading": "assigned"}


def _range_of_workers(checked: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the least and the most workers, and the options for finding the level between them.

    Raises ConfigError.
    """
    given, elasticity = checked.get("workers"), checked.get("elasticity")
    all_cores = min(usable_cores(), MOST_WORKERS)
    if given is None or isinstance(given, int):
        if elasticity is not None:
            raise ConfigError(
                f"elasticity{where} needs workers='elastic', or a range such as (1, 8), got "
                f"{'one for each core' if given is None else given}"
            )
        most = all_cores if given is None else given
        return {"workers": most, "least_workers": most}
    if checked["threading"] == "assigned":
        raise ConfigError(
            f"workers is {safe_repr(given)}, which needs threading='dynamic': a placement "
            f"policy gives an actor a worker that always runs{where}"
        )
    least, most = (1, all_cores) if given == "elastic" else given
    return {
        "workers": most,
        "least_workers": least,
        "elasticity": Elasticity() if elasticity is None else elasticity,
    }


def _workers(key: str, value: Any) -> int | str | tuple[int, int]:
    """Check a number of workers, the least and the most of them, or "elastic"."""
    if value == "elastic":
        return "elastic"
    if not isinstance(value, tuple | list):
        if isinstance(value, str):
            raise ConfigError(
                f"{key} must be a whole number from 1 to {MOST_WORKERS}, 'elastic', or a range "
                f"such as (1, 8), got {value!r}"
            )
        return checks.whole(key, value, most=MOST_WORKERS, error=ConfigError)
    if len(value) != 2:
        raise ConfigError(f"a range of {key} must be (least, most), got {safe_repr(value)}")
    least, most = (
        checks.whole(f"the {which} {key}", number, most=MOST_WORKERS, error=ConfigError)
        for which, number in zip(("least", "most"), value, strict=True)
    )
    if least > most:
        raise ConfigError(
            f"a range of {key} must be (least, most), got {least}, which is above {most}"
        )
    return least, most


def _elasticity(key: str, value: Any) -> Elasticity:
    """Check a table of options."""
    if isinstance(value, Elasticity):
        return value
    options = [field.name for field in fields(Elasticity)]
    for option in _table(key, value):
        _check_known(option, options, f" of {key}")
    return Elasticity(**value)


def _check(key: str, value: Any, where: str) -> Any:
    """Return the checked value of a setting."""
    _check_known(key, _CHECKS, where)
    return _located(where, _CHECKS[key], key, value)


def _check_known(option: str, options: Collection[str], of: str) -> None:
    if option not in options:
        raise ConfigError(f"no setting {option!r}{of}; there are {', '.join(options)}")


def _located(where: str, check: Callable[[str, Any], Any], key: str, value: Any) -> Any:
    """Call a check; if the setting is wrong, add its place to the error."""
    try:
        return check(key, value)
    except ConfigError as error:
        raise ConfigError(f"{error}{where}") from error.__cause__


def _name(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{key} must be a non-empty string, got {safe_repr(value)}")
    return value


def _cpu_affinity(key: str, value: Any) -> bool | tuple[int, ...]:
    if isinstance(value, bool):
        return value
    usable = sorted(os.sched_getaffinity(0))
    if (
        not isinstance(value, list | tuple)
        or not value
        or any(type(core) is not int or core not in usable for core in value)
    ):
        raise ConfigError(
            f"{key} must be true, false, or a list of cores out of "
            f"{', '.join(map(str, usable))}, got {safe_repr(value)}"
        )
    return tuple(value)


def _monitored(key: str, value: Any) -> tuple[type | str, ...]:
    if (
        not isinstance(value, list | tuple)
        or not value
        or any(not isinstance(kind, type | str) for kind in value)
    ):
        raise ConfigError(
            f"{key} must be a list of classes or of their names, got {safe_repr(value)}"
        )
    return tuple(value)


def _policy_of(choose: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    # Chosen once here, though not kept: a wrong policy must not let a system start.
    def check(key: str, value: Any) -> Any:
        try:
            choose(value)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from error.__cause__
        return value

    return check


def _table(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key} must be a table, got {safe_repr(value)}")
    return value


def _streams(key: str, value: Any) -> Mapping[str, Any]:
    """Check the configuration's settings of graphs of streams."""
    checked = {}
    for option, chosen in _table(key, value).items():
        _check_known(option, _STREAMS, f" of {key}")
        checked[option] = _STREAMS[option](f"{option} of {key}", chosen)
    return checked


def _check_actor(name: Any, where: str) -> None:
    """Check that an actor can have this name."""
    if not isinstance(name, str) or not name or "/" in name:
        raise ConfigError(
            f"actors.{name}: expected an actor's name, a non-empty string without '/', got "
            f"{safe_repr(name)}{where}"
        )


def _check_tuning(
    key: str, options: Any, where: str, makers: Mapping[str, Callable[..., Any]]
) -> Mapping[str, Any]:
    """Check the configuration's settings of one class or one actor."""
    checked = {}
    for option, value in _located(where, _table, key, options).items():
        _check_known(option, TUNABLE, f" of {key}{where}")
        make = makers.get(option)
        if make is None:
            checked[option] = _located(where, _OF_ACTORS[option], f"{option} of {key}", value)
            continue
        if option == "supervision" and isinstance(value, str):
            value = {"directive": value}
        table = _located(where, _table, f"{option} of {key}", value)
        try:
            checked[option] = make(**table)
        except (TypeError, ConfigError) as error:
            raise ConfigError(f"{option} of {key}: {error}{where}") from error
    return checked


def _processes(what: str, value: Any) -> int | str:
    if value == "auto":
        return "auto"
    if isinstance(value, str):
        raise ConfigError(f'{what} must be a whole number or "auto", got {safe_repr(value)}')
    return checks.whole(what, value, 0, MOST_WORKERS, error=ConfigError)


_weight = partial(checks.whole, least=0, most=2**32 - 1, error=ConfigError)

_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": _name,
    "workers": _workers,
    "processes": _processes,
    "shared_memory": partial(
        checks.whole, least=LEAST_SHARED_MEMORY, most=1 << 40, error=ConfigError
    ),
    "elasticity": _elasticity,
    "threading": partial(checks.one_of, choices=THREADING, error=ConfigError),
    "quantum": partial(checks.whole, most=2**31 - 1, error=ConfigError),
    "time_slice": partial(checks.seconds, zero=False, error=ConfigError),
    "monitoring": partial(checks.one_of, choices=MONITORING, error=ConfigError),
    "monitored": _monitored,
    "trace": check_trace,
    "observable": partial(checks.flag, error=ConfigError),
    "cpu_affinity": _cpu_affinity,
    "drain_timeout": partial(checks.seconds, error=ConfigError),
    "context": partial(checks.one_of, choices=CONTEXTS, error=ConfigError),
    "placement": _policy_of(choose_placement),
    "priority": _policy_of(choose_priority),
    "streams": _streams,
    "classes": _table,
    "actors": _table,
}

_OF_ACTORS: dict[str, Callable[[str, Any], Any]] = {
    "placement": _CHECKS["placement"],
    "priority": _weight,
    "context": _CHECKS["context"],
    "dedicated": partial(checks.flag, error=ConfigError),
}

_STREAMS: dict[str, Callable[[str, Any], Any]] = {
    "threading": partial(checks.one_of, choices=MODELS, error=ConfigError),
    "placement": _policy_of(choose_placement),
    "policy": _policy_of(choose_heuristic),
}
