"""Handles of things that exist once, such as a system or a connection."""

from __future__ import annotations

from typing import Any, Self


class CopiedAsItself:
    """The base of handles: a copy of a handle, shallow or deep, is the handle itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
