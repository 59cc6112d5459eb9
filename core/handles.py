"""What stands for something that there is once, such as a system or a connection."""

from __future__ import annotations

from typing import Any, Self


class CopiedAsItself:
    """A base of handles: a copy of what holds one, shallow or deep, holds the same."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
