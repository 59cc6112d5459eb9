"""Which levels a strategy visits: all of the small ones, and fewer the larger they are."""

from __future__ import annotations


def stepped(least: int, most: int, part: float) -> tuple[int, ...]:
    """Return levels from `least` to `most`, each larger by 1, or by `part` if that is more."""
    found = [least]
    while found[-1] < most:
        found.append(min(most, found[-1] + max(1, int(found[-1] * part))))
    return tuple(found)
