"""Functions of random boxes: pure ones, and what makes them fail, or asynchronous."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count, islice
from typing import Any

from callboard.nets.terms.labels import Label, name_of


def pure(
    name: str, outputs: tuple[tuple[Label, ...], ...], kind: str, factor: int, shift: int
) -> Callable[..., Any]:
    """Return a box's function. What it returns depends on the sum of its arguments alone."""

    def output(total: int, place: int = 0) -> dict[str, int]:
        labels = outputs[(total + place) % len(outputs)]
        values = {label: (factor * total + shift + at) % 7 for at, label in enumerate(labels)}
        return {name_of(label): value for label, value in values.items()}

    def one(*arguments: int) -> dict[str, int]:
        return output(sum(arguments))

    def maybe(*arguments: int) -> dict[str, int] | None:
        total = sum(arguments)
        return None if total % 3 == 0 else output(total)

    def many(*arguments: int) -> Iterator[dict[str, int]]:
        total = sum(arguments)
        for place in range((total + 1) % 4):
            yield output(total, place)

    def value(*arguments: int) -> object:
        values = tuple(output(sum(arguments)).values())
        return values[0] if len(values) == 1 else values

    function: Callable[..., Any] = {"one": one, "maybe": maybe, "many": many, "value": value}[kind]
    function.__name__ = name
    return function


def faulty(function: Callable[..., Any], fault: str) -> Callable[..., Any]:
    """Return a function that fails at some records; a generator fails amid its outputs.

    One that "raises at first" does so at some calls, whatever the record.
    """
    calls = count()

    def fails(arguments: tuple[int, ...]) -> bool:
        of = next(calls) if fault == "raises at first" else sum(arguments)
        return of % 3 == 1

    def put_out_nothing() -> object:
        if fault != "puts out no output":
            raise ValueError(fault)
        return {"no such label": 1}

    def one(*arguments: int) -> object:
        return put_out_nothing() if fails(arguments) else function(*arguments)

    def many(*arguments: int) -> Iterator[object]:
        outputs = function(*arguments)
        if fails(arguments):
            yield from islice(outputs, sum(arguments) % 2 + 1)
            yield put_out_nothing()
        yield from outputs

    made = many if inspect.isgeneratorfunction(function) else one
    made.__name__ = function.__name__
    return made


def on_a_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same as a coroutine function, or as an asynchronous generator."""

    async def one(*arguments: int) -> object:
        await asyncio.sleep(0)
        return function(*arguments)

    async def many(*arguments: int) -> AsyncIterator[object]:
        for output in function(*arguments):
            await asyncio.sleep(0)
            yield output

    made: Callable[..., Any] = many if inspect.isgeneratorfunction(function) else one
    made.__name__ = function.__name__
    return made
