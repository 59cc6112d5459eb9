"""Calls of a function for a batch of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from time import perf_counter_ns
from typing import Any

Errors = dict[int, BaseException]  # by the numbers of the records


def rows_of(columns: Sequence[Iterable[Any]], count: int) -> Iterable[tuple[Any, ...]]:
    """Return the values of each call."""
    return zip(*columns, strict=True) if columns else repeat((), count)


def called(
    function: Callable[..., Any], rows: Iterable[tuple[Any, ...]], *, generates: bool
) -> tuple[list[Any], Errors, int, int]:
    """Return the outputs of calls, their exceptions, and nanoseconds of all and of the longest."""
    outputs: list[Any] = []
    errors: Errors = {}
    worst = 0
    begun = last = perf_counter_ns()
    for row in rows:
        output: Any = [] if generates else None
        try:
            if generates:
                for value in function(*row):
                    if value is not None:
                        output.append(value)
            else:
                output = function(*row)
        except BaseException as error:  # also SystemExit, which is for the run
            errors[len(outputs)] = error
        outputs.append(output)
        now = perf_counter_ns()
        if now - last > worst:
            worst = now - last
        last = now
    return outputs, errors, last - begun, worst
