"""Boxes: the decorator that makes a function a net."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from callboard.core.text import safe_repr
from callboard.nets.terms.network import Box, BoxOptions, Effect
from callboard.nets.terms.patterns import BoxSignature
from callboard.nets.types.hints import (
    called_function,
    check_arguments,
    check_class,
    name_of_function,
    signature_of,
)


@overload
def box(
    function: Callable[..., Any],
    signature: str | BoxSignature | None = None,
    *,
    name: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    errors: Effect = "fail",
    threads: bool = False,
    dedicated: bool = False,
) -> Box: ...


@overload
def box(
    function: str | BoxSignature | None = None,
    /,
    *,
    signature: str | BoxSignature | None = None,
    name: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    errors: Effect = "fail",
    threads: bool = False,
    dedicated: bool = False,
) -> Callable[[Callable[..., Any]], Box]: ...


def box(
    function: Callable[..., Any] | str | BoxSignature | None = None,
    signature: str | BoxSignature | None = None,
    *,
    name: str | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    errors: Effect = "fail",
    threads: bool = False,
    dedicated: bool = False,
) -> Box | Callable[[Callable[..., Any]], Box]:
    """Make a function a box: `@box`, `@box("(x) -> (x, <p>)")`, or `box(function, "(x) -> (y)")`.

    A plain function returns one output, or None; a generator function yields any number. Either may
    be `async`. If it is a class, each replica of the box has an instance, which it calls.
    `functools.partial(Class, argument)` has arguments for it. Calling the box calls the function.

    Without a signature, the hints say it. Each parameter without a default is a field, or a tag if
    its hint is `Tag`. A dataclass or a TypedDict as the hint of the only parameter stands for that
    record; beside other parameters it is the class of a field's value. The result's hint is such a
    class, a union of them, or `Iterator[...]` of a generator function. `None` says that nothing
    comes out, and no hint leaves the outputs open.

    - `name`: in paths, errors and statistics. By default the function's.
    - `concurrency`: the most calls at a time. By default 1, and no limit for a coroutine function.
    - `timeout`: the most seconds that a call may take.
    - `retries`, `backoff`: how often a failed call is repeated, and the seconds before the first
      repetition, which double each time.
    - `errors`: at an error the run fails (`"fail"`), the record becomes a dead letter (`"skip"`),
      or a record `{error}` comes out (`"variant"`). With the last two, and with `retries`, the
      outputs of a generator are kept until it ends: a record that fails has none.
    - `threads`: calls run on threads of their own pool, since they block or release the lock.
    - `dedicated`: each replica has a thread of its own.
    """
    if isinstance(function, (str, BoxSignature)):
        if signature is not None:
            raise TypeError("a box has one signature, not two")
        function, signature = None, function
    options = BoxOptions(concurrency, timeout, retries, backoff, errors, threads, dedicated)
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"a box's name is a string that is not empty, not {safe_repr(name)}")
    if not isinstance(signature, (str, BoxSignature, type(None))):
        raise TypeError(f"a box's signature is a string, not {safe_repr(signature)}")

    def made(function: Callable[..., Any]) -> Box:
        return _made(function, signature, name, options)

    return made if function is None else made(function)


def _made(
    function: Callable[..., Any],
    signature: str | BoxSignature | None,
    name: str | None,
    options: BoxOptions,
) -> Box:
    if isinstance(function, Box):
        raise TypeError(f"{function.name} is a box already")
    called = called_function(function)
    is_async = inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
    check_class(function)
    known = name or name_of_function(function)
    if is_async and (options.threads or options.dedicated):
        word = "threads" if options.threads else "dedicated"
        raise ValueError(f"the box {known} is async: it takes no {word}=True")
    accepts = None
    if signature is None:
        signature, accepts = signature_of(function)
    else:
        if isinstance(signature, str):
            signature = parsed(signature)
        check_arguments(known, function, signature)
    return Box(known, signature, function, options, accepts)


def parsed(signature: str) -> BoxSignature:
    """Return the signature that a text says. NetSyntaxError says where it is none."""
    from callboard.nets.language.parsing import parse_box_signature

    return parse_box_signature(signature)
