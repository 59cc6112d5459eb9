"""Partitioning of keys by a user's function or bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from itertools import pairwise
from typing import Any

from callboard.core.text import safe_repr
from callboard.rows.instants import instant_of
from callboard.streams.checks import MOST_PARTITIONS, check_count, check_function
from callboard.streams.errors import GraphError

PARTITIONS = 64  # if nothing is said, for a function; and the most for a hash


def partitioning(
    partition: Any, partitions: Any
) -> tuple[Callable[[Any], int] | list[Any] | None, int | None]:
    """Return what says a key's partition, and how many there are. Raises GraphError.

    It is a function, or a list of the bounds between ranges, or None for the key's hash. How many
    there are is left to each run by None.
    """
    if partitions is not None:
        partitions = check_count("partitions", partitions, most=MOST_PARTITIONS)
    if partition is None or callable(partition):
        if partition is not None:
            check_function("key_by()'s partition", partition)
            partitions = partitions or PARTITIONS
        return partition, partitions
    bounds = _checked_bounds(partition)
    if partitions not in (None, len(bounds) + 1):
        raise GraphError(
            f"{len(bounds)} bounds make {len(bounds) + 1} partitions, got {partitions}: omit "
            "`partitions`"
        )
    return bounds, len(bounds) + 1


def _checked_bounds(given: Any) -> list[Any]:
    is_ordered = isinstance(given, Iterable) and not isinstance(given, Set | Mapping)
    if isinstance(given, str | bytes) or not is_ordered:
        raise GraphError(
            f"key_by()'s partition must be a function or a list of bounds, got {safe_repr(given)}"
        )
    bounds = list(map(instant_of, given))
    if not 0 < len(bounds) < MOST_PARTITIONS:
        raise GraphError(f"expected 1 to {MOST_PARTITIONS - 1} bounds, got {len(bounds)}")
    try:
        ascending = all(low < high for low, high in pairwise(bounds)) and bounds[0] == bounds[0]
    except Exception as error:
        raise GraphError(f"bounds cannot be compared: {safe_repr(error)}") from error
    if not ascending:
        raise GraphError(f"bounds must ascend, got {safe_repr(bounds)}")
    return bounds
