"""Brings all rows of a key into one partition, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from callboard.core.checks import whole
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def by_key(
    frame: DataFrame, key: str | Sequence[str], *, order: str | Sequence[str], partitions: int
) -> DataFrame:
    """Return a frame whose partitions contain all rows of their keys, sorted by `order`.

    Null is one key. Each partition is ordered, and so are the rows of each key; there is no order
    between partitions. Rows that are equal by `order` are sorted by all other columns, because the
    order after a shuffle may differ when a task is run again. Spark raises an error for columns
    that it cannot sort by, such as maps.

    Args:
        frame: The frame.
        key: The name of the key column, or several names.
        order: The name of a column to sort by, or several names.
        partitions: The number of partitions. It has no default, because adaptive execution would
            merge small ones.

    Raises ConfigError for a missing or ambiguous column.
    """
    keys, orders = names_of("key", key), names_of("order", order)
    check_frame("frame", "the frame", frame, [*keys, *orders])
    others = [name for name in frame.columns if name not in orders]
    columns = [frame[quoted(name)] for name in (*orders, *others)]
    return in_order(frame, partitions, [frame[quoted(name)] for name in keys], columns)


def in_order(
    frame: DataFrame, partitions: int, keys: Iterable[Column], columns: Iterable[Column]
) -> DataFrame:
    """Bring the rows of each key into one of the partitions, which are sorted by columns."""
    partitions = whole("partitions", partitions, error=ConfigError)
    return frame.repartition(partitions, *keys).sortWithinPartitions(*columns)


def names_of(what: str, names: str | Sequence[str]) -> list[str]:
    """Return one or several names of columns as a list; raise ConfigError for none."""
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise ConfigError(
            f"{what} expects a column's name, or several names, got {safe_repr(names)}"
        )
    return listed


def check_frame(name: str, what: str, frame: DataFrame, columns: Iterable[str]) -> None:
    """Raise ConfigError unless a frame has these columns, and no two of one name."""
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise ConfigError(f"{name} expects a frame of Spark, got {safe_repr(frame)}")
    has = frame.columns
    for column in columns:
        if column not in has:
            raise ConfigError(f"{what} has no column {safe_repr(column)}: it has {has}")
    for column in has:
        if has.count(column) > 1:
            raise ConfigError(f"{what} has {has.count(column)} columns {column!r}")


def quoted(name: str) -> str:
    """Return a column's name, quoted for Spark."""
    return "`" + name.replace("`", "``") + "`"
