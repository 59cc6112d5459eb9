"""Creates policies from their names in code or in a configuration.

The name is that of a shipped policy, or "package.module:Class", or a table has it as `policy`, with
its options: `{"policy": "blocks", "size": 8}`. Code may also give a class, or a placement
policy itself.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeVar

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.scheduling import placement, priority
from callboard.scheduling.flow import heuristics
from callboard.scheduling.flow.heuristics import Heuristic
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.priority import PriorityPolicy, ReadyOrder

Policy = TypeVar("Policy", PlacementPolicy, ReadyOrder, Heuristic)


def _shipped(module: ModuleType, base: type[Policy]) -> dict[str, type[Policy]]:
    """Return the policies that a module defines: `RoundRobin` is named round_robin."""
    return {
        re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower(): found
        for name, found in vars(module).items()
        if isinstance(found, type) and issubclass(found, base) and found is not base
        if found.__module__ == module.__name__
    }


PLACEMENTS = _shipped(placement, PlacementPolicy)
del PLACEMENTS["near"]  # a configuration has no refs
PRIORITIES = _shipped(priority, ReadyOrder)
del PRIORITIES["priority_policy"]  # the base of users' own
HEURISTICS = _shipped(heuristics, Heuristic)


def choose_placement(value: Any) -> PlacementPolicy:
    """Return the placement policy that `value` is or names. Raises ConfigError."""
    if isinstance(value, PlacementPolicy):
        return value
    policy = _make(value, PLACEMENTS, PlacementPolicy)
    if type(policy).place is PlacementPolicy.place:
        raise ConfigError(f"{type(policy).__qualname__} has no method `place`")
    return policy


def choose_priority(value: Any) -> ReadyOrder:
    """Return a new priority policy of the kind that `value` names. Raises ConfigError."""
    if isinstance(value, ReadyOrder):
        raise ConfigError(
            f"each worker needs its own priority policy: expected a name, a class or a table with "
            f"`policy` and its options as priority, got {safe_repr(value)}"
        )
    policy: ReadyOrder = _make(value, PRIORITIES, PriorityPolicy)
    if isinstance(policy, PriorityPolicy):
        policy._check()
    return policy


def choose_heuristic(value: Any) -> Heuristic:
    """Return a new heuristic of the kind that `value` names. Raises ConfigError."""
    policy = _make(value, HEURISTICS, Heuristic)
    policy._check()
    return policy


def _make(value: Any, shipped: Mapping[str, type[Policy]], base: type[Policy]) -> Policy:
    options: dict[str, Any] = {}
    if isinstance(value, Mapping):
        options = dict(value)
        value = options.pop("policy", None)
        if value is None:
            raise ConfigError(f"the table has no key `policy`: {safe_repr(options)}")
    found = _find(value, shipped) if isinstance(value, str) else value
    if base is not Heuristic and _is_heuristic(found):
        raise ConfigError(
            f"{safe_repr(value)} is a heuristic: it chooses among the operators of a graph, so it "
            "is given to run() as `policy`, or as `policy` under `streams` in a configuration"
        )
    is_shipped = any(found is each for each in shipped.values())
    if not is_shipped and not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(
            f"expected a policy: one of {', '.join(shipped)}, a subclass of "
            f"{base.__name__} as a class or as 'package.module:Class', or a table with `policy` "
            f"and its options, got {safe_repr(value)}"
        )
    signature = _signature(found)
    try:
        signature.bind(**options)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "none"
        raise ConfigError(f"policy {safe_repr(value)}: {error}; its options: {known}") from None
    try:
        policy: Policy = found(**options)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"policy {safe_repr(value)} cannot be made: {safe_repr(error)}"
        ) from error
    return policy


def _find(name: str, shipped: Mapping[str, Any]) -> Any:
    if name in shipped or name in HEURISTICS:  # a heuristic is out of place here; the error says so
        return shipped.get(name) or HEURISTICS[name]
    module, colon, path = name.partition(":")
    if not colon:
        raise ConfigError(
            f"no policy {name!r}; there are {', '.join(shipped)}, and your own as "
            "'package.module:Class'"
        )
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"no policy {name!r}: {error}") from error
    return found


def _is_heuristic(found: Any) -> bool:
    kind = found if isinstance(found, type) else type(found)
    return issubclass(kind, Heuristic)


def _signature(policy: type) -> inspect.Signature:
    """Return a policy's arguments. Compiled classes have a `__signature__`, or no arguments."""
    made_plainly = policy.__init__ is object.__init__  # type: ignore[misc]
    if made_plainly and not hasattr(policy, "__signature__"):
        return inspect.Signature()
    try:
        return inspect.signature(policy)
    except ValueError:
        anything = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)
        return inspect.Signature([anything])
