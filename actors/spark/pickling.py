"""Find out on the driver whether a build function can travel to the workers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from callboard.spark.errors import CaptureError

_ADVICE = (
    "Only what can be pickled reaches a worker process: open files, locks, connections, actor "
    "systems and refs cannot. Make it inside build, which runs in the worker"
)


def pickle_build(build: Any) -> bytes:
    """Pickle a build function as Spark will; raise CaptureError naming what it captured if not."""
    try:
        return _dumps(build)
    except ImportError:
        raise
    except Exception as error:  # whatever a __reduce__ may raise
        path, value, reason = _culprit(_name(build), build, error, set())
        raise CaptureError(
            f"{path} ({type(value).__name__}) cannot be pickled: {reason}. {_ADVICE}"
        ) from error


def _dumps(value: Any) -> bytes:
    try:
        from pyspark import cloudpickle
    except ImportError as error:
        raise ImportError(
            "callboard.spark needs PySpark: pip install 'callboard[spark]'"
        ) from error
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return pickled


def _culprit(path: str, value: Any, error: Exception, seen: set[int]) -> tuple[str, Any, Exception]:
    """Follow what fails to pickle from a value down to the innermost thing that has a name."""
    seen.add(id(value))
    for name, inner in _captured(value):
        if id(inner) in seen:
            continue
        try:
            _dumps(inner)
        except Exception as reason:
            return _culprit(f"{path} -> {name}", inner, reason, seen)
    return path, value, error


def _captured(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what pickling a value takes along, each with the name that its author gave it."""
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
    elif not _has_own_reduce(value):  # else it refused by itself, and said why
        yield from getattr(value, "__dict__", {}).items()


def _has_own_reduce(value: Any) -> bool:
    return any("__reduce__" in vars(base) for base in type(value).__mro__[:-1])


def _is_slot(value: Any) -> bool:
    """Tell whether a class attribute is the interpreter's own: pickling a class makes it anew."""
    return inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)


def _name(build: Any) -> str:
    return getattr(build, "__qualname__", None) or type(build).__qualname__
