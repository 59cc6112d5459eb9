"""Finds the object that keeps a function or another value from being pickled."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any


def culprit(
    path: str,
    value: Any,
    dumps: Callable[[Any], object],
    error: Exception,
    seen: set[int] | None = None,
) -> tuple[str, Any, Exception]:
    """Follow the object that fails to pickle from a value down to the innermost named one.

    Returns the path to it, the object, and what its pickling by `dumps` raised.
    """
    seen = set() if seen is None else seen
    seen.add(id(value))
    for name, inner in _captured(value):
        if id(inner) in seen:
            continue
        try:
            dumps(inner)
        except Exception as reason:
            return culprit(f"{path} -> {name}", inner, dumps, reason, seen)
    return path, value, error


def _captured(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that are pickled with a value, each with its name in the source."""
    if isinstance(value, functools.partial):
        yield "func", value.func
        yield from ((f"args[{i}]", item) for i, item in enumerate(value.args))
        yield from value.keywords.items()
    elif inspect.ismethod(value):
        yield "self", value.__self__
        yield from _captured(value.__func__)
    elif inspect.isfunction(value):
        names = inspect.getclosurevars(value)
        yield from names.nonlocals.items()
        yield from names.globals.items()
        yield from (value.__kwdefaults__ or {}).items()
        yield from ((f"default {i}", item) for i, item in enumerate(value.__defaults__ or ()))
        for constant in value.__code__.co_consts:  # a function defined inside reads globals too
            if inspect.iscode(constant):
                inner = {
                    n: value.__globals__[n] for n in constant.co_names if n in value.__globals__
                }
                yield from inner.items()
    elif inspect.isclass(value):
        yield from ((n, item) for n, item in vars(value).items() if not _is_slot(item))
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif not _has_own_reduce(value):  # which raises its own error
        yield from getattr(value, "__dict__", {}).items()


def _has_own_reduce(value: Any) -> bool:
    return any("__reduce__" in vars(base) for base in type(value).__mro__[:-1])


def _is_slot(value: Any) -> bool:
    """Tell whether the interpreter makes a class attribute, when a class is unpickled."""
    return inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)
