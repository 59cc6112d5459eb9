"""Rows that are on their way into a graph, in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from callboard.core.text import safe_repr


class Batches:
    """An iterator over lists of `size` rows, and one of those left at the end.

    If `rows` raises an Exception, what it gave before is a batch of its own first. `taken` is the
    latest batch, whole or not, and `raised` the exception that is to come after it, or None.

    Raises TypeError, which names the `caller`, for what holds no rows.
    """

    def __init__(self, caller: str, rows: Iterable[Any], size: int) -> None:
        if hasattr(rows, "__arrow_c_array__"):  # a row of its own, though one can iterate over it
            rows = [rows]
        if isinstance(rows, str | bytes | bytearray | Mapping):
            kind = type(rows).__name__
            raise TypeError(
                f"{caller} wants an iterable of rows, not one {kind}: {safe_repr(rows)}"
            )
        try:
            self._rows = iter(rows)
        except TypeError:
            raise TypeError(
                f"{caller} wants an iterable of rows, not {safe_repr(rows)}"
            ) from None
        self._size = size
        self.taken: list[Any] = []
        self.raised: Exception | None = None

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __next__(self) -> list[Any]:
        if self.raised is not None:
            raise self.raised
        self.taken = []
        try:
            self.taken.extend(islice(self._rows, self._size))  # keeps what came before it raises
        except Exception as error:
            if not self.taken:
                raise
            self.raised = error
        if not self.taken:
            raise StopIteration
        return self.taken
