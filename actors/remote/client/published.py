"""A client's access to published rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.core import checks
from callboard.core.handles import public_names
from callboard.remote.client.writer import UploadRequest, repeat
from callboard.remote.errors import CodecError
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.protocol.requests import PublishedPiece, PublishedRange
from callboard.remote.wire.arrow_ipc import read_batches

if TYPE_CHECKING:
    import pyarrow as pa

    from callboard.remote.client.session import SessionOwner


class PublishedRows:
    """The rows that a PersistentActor publishes, with the numbers 0, 1, 2...

    A range has the same rows until it is released. Each call may be repeated, and retries over new
    connections for the connection's timeout.

    Calls raise NotPublished and ConnectionLost. Any thread may make them, except an event loop's,
    which they would block: there they raise CallboardError.
    """

    __dir__ = public_names

    def __init__(self, connection: SessionOwner, entry: str) -> None:
        self._connection = connection
        self._entry = entry

    def earliest(self) -> int:
        """Return the number of the first row that was not released."""
        return self._range().first

    def latest(self) -> int:
        """Return the number of the next row, which is the number of rows ever published."""
        return self._range().end

    def schema(self) -> pa.Schema:
        """Return the schema of the columns, as declared by the actor's class."""
        import pyarrow as pa

        return pa.ipc.read_schema(pa.py_buffer(self._range().schema))

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `start` on, before `end`, in record batches.

        Raises NotPublished at a row that was released, or is not published yet.
        """
        checks.whole("start", start, 0)
        checks.whole("end", end, start)
        return self._read(start, end)

    def _read(self, at: int, end: int) -> Iterator[pa.RecordBatch]:
        while at < end:
            piece = PublishedPiece(*self._ask(MessageKind.READ, at))
            behind = piece.first + piece.rows
            batches = read_batches(piece.payload)
            sizes = [batch.num_rows for batch in batches]
            if sizes != [piece.rows] or not piece.first <= at < behind:
                raise CodecError(
                    f"expected one batch with row {at}, got batches of {sizes} rows, announced as "
                    f"{piece.rows} rows from {piece.first} on"
                )
            yield batches[0].slice(at - piece.first, min(end, behind) - at)
            at = behind

    def release(self, end: int) -> None:
        """Release the rows before `end`, for all readers. Some may already be released."""
        self._ask(MessageKind.RELEASE, checks.whole("end", end, 0))

    def _range(self) -> PublishedRange:
        return PublishedRange(*self._ask(MessageKind.PUBLISHED))

    def _ask(self, kind: MessageKind, *numbers: int) -> Any:
        connection = self._connection
        submission = partial(UploadRequest, kind, numbers, entry=self._entry)
        what = f"{kind.name} of {self._entry!r}"
        return repeat(connection, submission, what, connection.timeout)

    def __repr__(self) -> str:
        return f"<PublishedRows of {self._entry!r} at {self._connection!r}>"
