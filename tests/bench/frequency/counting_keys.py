"""Keys are counted by one thread, and the 25 most frequent ones asked for now and then."""

from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callboard.frequency import SpaceSaving
from frequency.zipf import zipf
from savina.result import Result

EPSILON = 1e-4
LG_MAP = 15  # of DataSketches' map: with it epsilon is 1.07e-4, with one more it is half of that
TOP = 25

Bounds = Callable[[Any], tuple[float, float]]
"""How often a key came: at least, and at most."""


def run(
    n: int,
    *,
    by: str = "callboard",
    keys: str = "integers",
    alpha: float = 1.5,
    every: int = 0,
    ask: bool = False,
) -> Result:
    """Count `n` keys; with `every`, so many at a time; with `ask`, asked for the top after each."""
    numbers = zipf(n, alpha)
    stream: Any = numbers
    if keys == "texts":
        stream = list(map(text_of, numbers.tolist()))
    elif by != "callboard":
        stream = numbers.tolist()
    seconds, bounds = BY[by](stream, every, ask)
    got, want = held(bounds, numbers, text_of if keys == "texts" else int, by)
    return Result(n, seconds, got, want)


def text_of(number: int) -> str:
    return f"page/{number:x}.html"


def held(
    bounds: Bounds, numbers: NDArray[np.int64], key_of: Callable[[int], Any], by: str
) -> tuple[int, int]:
    """Say of how many of the most frequent keys the bounds hold, and how many there are."""
    top = Counter(numbers.tolist()).most_common(TOP)
    slack = (1.07 if by == "datasketches" else 1) * EPSILON * len(numbers)
    good = 0
    for number, times in top:
        low, high = bounds(key_of(number))
        good += low <= times <= high <= times + slack
    return good, len(top)


def by_callboard(stream: Any, every: int, ask: bool) -> tuple[float, Bounds]:
    summary = SpaceSaving(EPSILON)
    parts = [stream[at : at + every] for at in range(0, len(stream), every)] if every else [stream]
    begin = perf_counter()
    for part in parts:
        summary.update(part)
        if ask:
            summary.top(TOP)
    seconds = perf_counter() - begin

    def bounds(key: Any) -> tuple[float, float]:
        _, count, error = summary.estimate(key)
        return count - error, count

    return seconds, bounds


def by_counter(stream: Iterable[Any], *_: Any) -> tuple[float, Bounds]:
    counts: Counter[Any] = Counter()
    begin = perf_counter()
    counts.update(stream)
    return perf_counter() - begin, lambda key: (counts[key], counts[key])


def by_datasketches(stream: Iterable[Any], *_: Any) -> tuple[float, Bounds]:
    import datasketches

    sketch: Any
    keys = iter(stream)
    first = next(keys)
    if isinstance(first, str):
        sketch = datasketches.frequent_strings_sketch(LG_MAP)
    else:
        sketch = datasketches.frequent_items_sketch(LG_MAP)
    update = sketch.update
    update(first)
    begin = perf_counter()
    for key in keys:
        update(key)
    seconds = perf_counter() - begin
    return seconds, lambda key: (sketch.get_lower_bound(key), sketch.get_upper_bound(key))


BY = {"callboard": by_callboard, "counter": by_counter, "datasketches": by_datasketches}
