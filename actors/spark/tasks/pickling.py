"""Checks on the driver whether a task's objects can be pickled, and kept on workers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from callboard.spark.errors import CaptureError, without_pyspark

_ADVICE = (
    "Objects must be pickled to reach a worker process, which open files, locks, connections, "
    "actor systems and refs cannot be. Make it inside build, which runs in the worker"
)
_TASK_ADVICE = (
    "Use lifetime='task', or answer PartitionEnd with what was counted and add it up as results"
)


def pickle_for_tasks(name: str, value: Any, *, keep: bool) -> bytes:
    """Pickle the objects that tasks need, or raise a CaptureError that begins with the name.

    With `keep` it is for actors that outlive a task, and objects bound to one task are refused too.
    The bytes are only compared; Spark pickles again for the workers.
    """
    try:
        return _dumps(value, keep)
    except ImportError:
        raise
    except Exception as error:  # whatever a __reduce__ may raise
        raise _refusal(*_culprit(name, value, keep, error, set())) from error


def name_of(build: Any) -> str:
    """Return the name of a build function in errors."""
    return getattr(build, "__qualname__", None) or type(build).__qualname__


def _dumps(value: Any, keep: bool) -> bytes:
    try:
        from callboard.spark.tasks.probe_pickler import dumps
    except ImportError as error:
        raise without_pyspark(error) from error
    return dumps(value, keep=keep)


def _refusal(path: str, value: Any, reason: Exception) -> CaptureError:
    from callboard.spark.tasks.probe_pickler import TaskBound

    what = f"{path} ({type(value).__name__})"
    if isinstance(reason, TaskBound):
        return CaptureError(f"{what} cannot be kept from task to task: {reason}. {_TASK_ADVICE}")
    return CaptureError(f"{what} cannot be pickled: {reason}. {_ADVICE}")


def _culprit(
    path: str, value: Any, keep: bool, error: Exception, seen: set[int]
) -> tuple[str, Any, Exception]:
    """Follow the object that fails to pickle from a value down to the innermost named one."""
    seen.add(id(value))
    for name, inner in _captured(value):
        if id(inner) in seen:
            continue
        try:
            _dumps(inner, keep)
        except Exception as reason:
            return _culprit(f"{path} -> {name}", inner, keep, reason, seen)
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
