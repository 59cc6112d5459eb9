"""Which key a row has, and so which shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.remote.errors import CodecError
from callboard.remote.sharding.key_hash import key_hash

By = str | Sequence[str] | Callable[[Any], Any]
"""A column's name; several, whose values in a tuple are the key; or a function of the row."""


class ShardKey:
    """How rows are divided among a number of shards."""

    def __init__(self, by: By, shards: int) -> None:
        """Take what says the key of a row. Raises ConfigError for what does not."""
        self.shards = shards
        self.names: list[str] | None = None
        """The columns of the key; None if it is a function's."""
        self.is_tuple = False
        """Whether the key is a tuple with a value of each column."""
        if callable(by):
            self._key_of: Callable[[Any], Any] = by
            return
        self.is_tuple = not isinstance(by, str)
        try:
            self.names = names = [by] if isinstance(by, str) else list(by)
        except TypeError:
            names = []
        if not names or not all(isinstance(name, str) for name in names):
            raise ConfigError(
                "by= is a column's name, several names, or a function of the row, not "
                + safe_repr(by)
            )
        if self.is_tuple:
            self._key_of = lambda row: tuple([_field(row, name) for name in names])
        else:
            self._key_of = lambda row: _field(row, names[0])

    def of_row(self, row: Any) -> int:
        """Return the shard of a row. Raises CodecError, and what the function raises."""
        return self.hash_of_row(row) % self.shards

    def hash_of_row(self, row: Any) -> int:
        """Return the hash of a row's key. Raises like `of_row`."""
        return key_hash(self._key_of(row))

    def divide(self, rows: Iterable[Any]) -> list[list[Any]]:
        """Return the rows of each shard, in their order. Raises like `of_row`."""
        parts: list[list[Any]] = [[] for _ in range(self.shards)]
        for row in rows:
            parts[self.of_row(row)].append(row)
        return parts


def shard_of(key: Any, shards: int) -> int:
    """Return the number of the shard that has a key, of so many: its hash's remainder.

    It is the same in every process, and for keys that are equal. Raises CodecError for anything but
    a key, and ValueError for anything but a number of shards from 1 on.
    """
    return key_hash(key) % checks.whole("the number of shards", shards)


def _field(row: Any, name: str) -> Any:
    try:
        return row[name] if isinstance(row, dict) else getattr(row, name)
    except (KeyError, AttributeError):
        raise CodecError(
            f"a row has no {name!r}, by which it is to be sent to a shard: {safe_repr(row)}"
        ) from None
