"""Protocols of the user's classes in stateless and stateful operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Row = TypeVar("Row")


class RowHandler(Protocol[In, Out]):
    """An object that handles rows.

    It may have further methods, which callboard then calls:

    - `receive_many(rows)`: called instead of `receive`, with all available rows, if there are no
      keys. Its outputs must be those of `receive` for each row in turn.
    - `on_watermark(time)`, `on_final()`: return outputs at a watermark, and at the end of the
      stream; for stateful operators.
    - `is_idle()`: called after each watermark; returns whether a key's object may be forgotten.
      When the key occurs again, a new object is made, and the key is then behind those that stayed.
    - `take_skipped()`: called after each `receive` of a stateful operator. It returns the
      exceptions for parts of the row that were dropped, which the run counts like skipped rows.
    - `snapshot()`, `restore(state)`: return the state for a snapshot of the run, made of values
      that messages between processes may have; and restore it in a new object.

    If `receive` raises at the first row of a key, the object is forgotten.
    """

    def receive(self, row: In, /) -> Iterable[Out] | None:
        """Handle a row, and return its outputs, or None."""


class BatchHandler(Protocol[Row, Out]):
    """An object that handles many rows at once."""

    def receive_many(self, rows: list[Row], /) -> Iterable[Out] | None:
        """Handle rows, and return their outputs, or None."""
