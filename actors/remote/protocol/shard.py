"""The number of a shard among several servers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr

MOST = 65_536
_TEXT = re.compile(r"(\d{1,5})/(\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """A server that has a part of the keys: number `index`, from 0 on, of `count`."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `INDEX/COUNT`, such as `0/4`, the first of four. Raises ConfigError."""
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ConfigError(f"expected a shard INDEX/COUNT, such as 0/4, got {safe_repr(text)}")
        shard = cls(int(found[1]), int(found[2]))
        if not shard.index < shard.count <= MOST:
            raise ConfigError(
                f"{shard.count} shards have no number {shard.index}: they are counted from 0"
            )
        return shard

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
