"""Rows that an actor publishes, in pieces of Arrow's IPC format, until they are on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.core.text import safe_repr
from callboard.remote.errors import RemoteError
from callboard.remote.wire.arrow_ipc import write_batch

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 4096  # in a piece, at most
_BYTES = 2**20  # of a piece, unless it is one row


class Piece(NamedTuple):
    """Consecutive rows: their number, and a stream with one record batch of them."""

    rows: int
    payload: bytes


class Outbox:
    """One actor's published rows since its last snapshot. Used by one thread at a time."""

    def __init__(self, schema: pa.Schema, longest: int) -> None:
        """`longest` is the maximum size of a piece, in bytes."""
        self.schema = schema
        self._longest = longest
        self._rows: list[tuple[Any, ...]] = []
        self._pieces: list[Piece] = []

    def add(self, row: Any) -> None:
        """Add a row. Raises TypeError, ValueError; RemoteError if earlier rows do not fit."""
        if not isinstance(row, tuple | list):
            raise TypeError(f"expected a published row as a tuple or a list, got {safe_repr(row)}")
        if len(row) != len(self.schema):
            raise ValueError(
                f"expected values for the columns {self.schema.names}, got {safe_repr(row)}"
            )
        self._rows.append(tuple(row))  # a list may change before it is packed
        if len(self._rows) == _ROWS:
            self._flush()

    def take(self) -> list[Piece]:
        """Remove and return all rows, in order. Raises RemoteError."""
        self._flush()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._pack(rows)

    def _pack(self, rows: Sequence[Sequence[Any]]) -> None:
        payload = b"".join(write_batch(self._batch(rows)))
        if len(payload) > min(_BYTES, self._longest) and len(rows) > 1:
            middle = len(rows) // 2
            self._pack(rows[:middle])
            self._pack(rows[middle:])
        elif len(payload) > self._longest:
            raise RemoteError(
                f"a published row takes {len(payload)} bytes, but {self._longest} fit into a frame"
            )
        else:
            self._pieces.append(Piece(len(rows), payload))

    def _batch(self, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        import pyarrow as pa

        columns = []
        for field, values in zip(self.schema, zip(*rows, strict=True), strict=True):
            try:
                column = pa.array(values, field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise RemoteError(f"published rows, column {field.name!r}: {error}") from error
            if column.null_count and not field.nullable:
                raise RemoteError(f"published rows, column {field.name!r}: None is not allowed")
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
