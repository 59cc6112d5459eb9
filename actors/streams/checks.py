"""Checks of operators' arguments: each raises GraphError, with the fact and the value."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from functools import partial, partialmethod
from types import FunctionType, MethodType
from typing import Any

from callboard.core import checks
from callboard.core.checks import is_missing
from callboard.core.text import safe_repr
from callboard.streams.errors import GraphError

# The most rows of a batch: their positions take 32 bits where branches meet again.
MOST = 2**31 - 1
# Each takes a table, and a queue as long as a run's window.
MOST_PARTITIONS = 4096

_METHODS = (
    "receive", "receive_many", "on_watermark", "on_final", "is_idle", "snapshot", "restore",
)  # fmt: skip

check_count = partial(checks.whole, error=GraphError)
check_choice = partial(checks.one_of, error=GraphError)
check_flag = partial(checks.flag, error=GraphError)


def check_function(what: str, value: Any, *, may_yield: bool = False) -> None:
    """Check that something can be called, and then returns; or may also yield."""
    if not callable(value):
        raise GraphError(f"{what}: expected a function, got {safe_repr(value)}")
    check_answers(what, value, may_yield=may_yield)


def check_answers(what: str, function: Any, *, may_yield: bool = False) -> None:
    """Check that a function is not `async`, and a generator only if it may yield."""
    code = _code_of(function)
    if inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code):
        raise GraphError(
            f"{what}: expected a plain function, got an async one, which is never awaited: "
            f"{safe_repr(function)}"
        )
    if not may_yield and inspect.isgeneratorfunction(code):
        raise GraphError(
            f"{what}: expected a function that returns a value, got a generator function: "
            f"{safe_repr(function)}"
        )


def check_receiver(cls: Any) -> None:
    """Check the methods of what `stateful()` and `stateless()` are given; see protocols.py."""
    name = getattr(cls, "__qualname__", None) or type(cls).__qualname__
    for method in _METHODS:
        function = inspect.getattr_static(cls, method, None)
        if function is not None:
            may_yield = method.startswith(("receive", "on_"))
            check_answers(f"{name}.{method}()", function, may_yield=may_yield)


def _code_of(function: Any) -> Any:
    """Find what runs when something is called, as far as one can see."""
    while True:
        if isinstance(function, partial | partialmethod):
            function = function.func
        elif isinstance(function, MethodType | staticmethod | classmethod):
            function = function.__func__
        else:
            break
    if not callable(function):
        return function
    call = type(function).__call__  # which of a function, or a class, is not Python's
    return call if isinstance(call, FunctionType) else function


def check_name(what: str, value: Any) -> None:
    """Check that something is a name."""
    if not isinstance(value, str) or not value:
        raise GraphError(f"{what} must be a non-empty string, got {safe_repr(value)}")


def check_entry(name: Any, entries: Collection[str]) -> None:
    """Check that a graph has such an entry."""
    if not isinstance(name, str) or name not in entries:
        has = ", ".join(map(repr, entries))
        raise GraphError(f"the graph has no entry {safe_repr(name)}: it has {has}")


def check_sides(names: Iterable[str]) -> tuple[str, ...]:
    """Check the names of side outputs."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise GraphError(f"sides must be a list of names, got {safe_repr(names)}")
    names = tuple(names)
    for name in names:
        check_name("a side output's name", name)
    return names


def check_value(what: str, value: Any) -> None:
    """Check, for one row, a value that rows are told apart or put in order by. Raises ValueError.

    NaN has no place in an order, and is not even equal to itself.
    """
    if (value != value) is not False and is_missing(value):
        raise ValueError(f"{what} must be equal to itself, got {safe_repr(value)}")
