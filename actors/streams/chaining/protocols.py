"""Protocols of the classes of stateless and stateful operators, for type checkers and readers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Row = TypeVar("Row")


class RowHandler(Protocol[In, Out]):
    """An object that is handed the rows.

    It may also have, and callboard then calls:

    `receive_many(rows)`: called in the place of `receive`, with as many rows as are there, where
    there are no keys. Its outputs are those that `receive` would give for one row after the other.

    `on_watermark(time)`, `on_final()`: outputs at a watermark, and at the end of the stream; for
    stateful operators.

    `is_idle()`: asked after each watermark whether the object of a key may be forgotten. It is made
    anew when the key comes again; the key is then behind those that stayed.

    `take_skipped()`: called after each `receive` of a stateful operator. It returns the exceptions
    at parts of the row that were dropped. The run counts them like rows that it skips.

    `snapshot()`, `restore(state)`: the state for a snapshot of the run, of values that messages
    between processes may have; and the way back, of an object that was just made.

    If `receive` raises at the first row of a key, the object is forgotten with it.
    """

    def receive(self, row: In, /) -> Iterable[Out] | None:
        """Handle a row, and return its outputs; None for none."""


class BatchHandler(Protocol[Row, Out]):
    """An object that is handed many rows at once."""

    def receive_many(self, rows: list[Row], /) -> Iterable[Out] | None:
        """Handle rows, and return their outputs; None for none."""
