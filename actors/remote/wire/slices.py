"""Work that is done in slices: generators that yield where others may have a turn."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def finish(work: Generator[None, None, T]) -> T:
    """Do all of it at once, and return what comes of it."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
