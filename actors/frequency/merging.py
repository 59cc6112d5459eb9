"""Two summaries' counters as those of one."""

from __future__ import annotations

from typing import Any

from callboard.core.instants import as_key
from callboard.frequency.results import Counted

__all__ = ["merged"]


def merged(
    mine: list[Counted], my_unseen: int, theirs: list[Counted], their_unseen: int, most: int
) -> tuple[list[Counted], int]:
    """Return the `most` greatest counters of both, and how often another key may have come.

    If only one of them has a counter for a key, the other may have seen it up to `unseen` times, as
    any key without a counter.
    """
    counters: dict[Any, Counted] = {
        as_key(key): Counted(key, count + their_unseen, error + their_unseen)
        for key, count, error in mine
    }
    for given, count, error in theirs:
        key = as_key(given)
        had = counters.get(key)
        if had is None:
            counters[key] = Counted(given, count + my_unseen, error + my_unseen)
        else:
            counters[key] = Counted(
                given, had.count + count - their_unseen, had.error + error - their_unseen
            )
    rows = sorted(counters.values(), key=lambda each: -each.count)
    greatest_left_out = rows[most].count if len(rows) > most else 0
    return rows[:most], max(my_unseen + their_unseen, greatest_left_out)
