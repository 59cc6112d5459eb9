"""Puts all rows of a key into one partition, in one order."""

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
    """Return a frame whose partitions have all rows of their keys, and are sorted by `order`.

    `key` and `order` are columns' names, one or several. Rows whose key is null are one key's. The
    promise is the order in a partition, and so that of each key's rows; between partitions there is
    none. Rows that are equal by `order` are sorted by all other columns, because a shuffle brings
    them in any order, and in another one when a task is run again. Spark raises for columns that it
    cannot sort by, such as maps.

    `partitions` has no default, as adaptive execution would make one of several that are small.

    Raises ConfigError for a column that is not there, or is there twice.
    """
    keys, orders = names_of("key", key), names_of("order", order)
    check_frame("frame", "the frame", frame, [*keys, *orders])
    others = [name for name in frame.columns if name not in orders]
    columns = [frame[quoted(name)] for name in (*orders, *others)]
    return in_order(frame, partitions, [frame[quoted(name)] for name in keys], columns)


def in_order(
    frame: DataFrame, partitions: int, keys: Iterable[Column], columns: Iterable[Column]
) -> DataFrame:
    """Bring rows of one key into one of so many partitions, and sort each by columns."""
    partitions = whole("partitions", partitions, error=ConfigError)
    return frame.repartition(partitions, *keys).sortWithinPartitions(*columns)


def names_of(what: str, names: str | Sequence[str]) -> list[str]:
    """Return one or several names of columns as a list; raise ConfigError for none."""
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise ConfigError(f"{what} is a column's name, or several names, not {safe_repr(names)}")
    return listed


def check_frame(name: str, what: str, frame: DataFrame, columns: Iterable[str]) -> None:
    """Raise ConfigError unless a frame has these columns, and no two of one name."""
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise ConfigError(f"{name} is a frame of Spark, not {safe_repr(frame)}")
    has = frame.columns
    for column in columns:
        if column not in has:
            raise ConfigError(f"{what} has no column {safe_repr(column)}: it has {has}")
    for column in has:
        if has.count(column) > 1:
            raise ConfigError(f"{what} has {has.count(column)} columns {column!r}")


def quoted(name: str) -> str:
    """Return a column's name as Spark reads it, whatever it has in it."""
    return "`" + name.replace("`", "``") + "`"
