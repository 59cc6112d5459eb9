"""Checks of a configuration's classes: that they exist, and whether actors of them came."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator

from callboard.actor import Actor
from callboard.core.errors import ConfigError
from callboard.core.text import did_you_mean, safe_repr
from callboard.native import NativeActor


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
