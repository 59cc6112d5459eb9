"""Encodes and decodes record batches as streams of Arrow's IPC format."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from callboard.remote.errors import CodecError
from callboard.remote.wire.arrow_columns import ColumnChecker, check_types
from callboard.remote.wire.frames import Buffer, finish
from callboard.remote.wire.ipc_messages import BATCH, DICTIONARY, messages_in

if TYPE_CHECKING:
    import pyarrow as pa

_SMALL = 4096  # bytes: to copy them costs less than another part of a write
_LONGEST_KEPT = 16 * 1024  # bytes of a schema that a reader keeps
# Bytes that are checked in a slice; a column counts as this many bytes of work.
_SLICE, _COLUMN = 8 << 20, 64 * 1024
_END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream: a message without metadata


class _Parts:
    """A file that keeps what is written, without copying large parts."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self._small: list[Buffer] = []

    def write(self, data: Any) -> int:
        """Take bytes, or an Arrow buffer."""
        view = memoryview(data)
        self._small.append(view)
        if len(view) > _SMALL:
            self._small.pop()
            self.flush()
            self.parts.append(view)
        return len(view)

    def flush(self) -> None:
        """Make one part of the small ones."""
        if self._small:
            self.parts.append(b"".join(self._small))
            self._small.clear()


class _Writer:
    """Writes the batches of one schema without dictionaries, each as a separate stream."""

    def __init__(self, schema: pa.Schema) -> None:
        import pyarrow as pa

        self.schema = schema
        self._sink = _Parts()
        self._stream = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema)
        self._opening: Buffer = b""  # the first time the stream writes it

    def write(self, batch: pa.RecordBatch) -> tuple[Buffer, ...]:
        self._sink.write(self._opening)
        self._stream.write_batch(batch)
        self._sink.write(_END)
        self._sink.flush()
        if not self._opening:
            self._opening = memoryview(self.schema.serialize())
        parts, self._sink.parts = tuple(self._sink.parts), []
        return parts


_kept = threading.local()  # a thread's last writer: making one takes longer than writing


def write_batch(batch: pa.RecordBatch) -> tuple[Buffer, ...]:
    """Return the parts of the stream that has this batch alone, with its schema.

    Its columns are not copied. Raises CodecError.
    """
    import pyarrow as pa

    if not isinstance(batch, pa.RecordBatch):
        raise CodecError(
            f"send_batch() expects a pyarrow.RecordBatch, got a {type(batch).__name__}"
        )
    schema = batch.schema
    writer: _Writer | None = getattr(_kept, "writer", None)
    _kept.writer = None  # until it has written: one that fails is of no use
    if writer is None or not writer.schema.equals(schema, check_metadata=True):
        check_types(schema)
        if not _is_plain(schema):
            return _write_stream(batch)
        writer = _Writer(schema)
    parts = writer.write(batch)
    _kept.writer = writer
    return parts


def _write_stream(batch: pa.RecordBatch) -> tuple[Buffer, ...]:
    import pyarrow as pa

    written = _Parts()
    with pa.ipc.new_stream(pa.PythonFile(written, mode="w"), batch.schema) as writer:
        writer.write_batch(batch)
    written.flush()
    return tuple(written.parts)


class ArrowReader:
    """Reads streams that one client sends; they often begin with the same schema."""

    def __init__(self, *, is_trusted: bool = False) -> None:
        """`is_trusted`: this process has made the bytes, so any number of values may be in them."""
        self._opening = b""  # of the last stream, if a batch of it is one message
        self._schema: pa.Schema | None = None
        self._is_trusted = is_trusted

    def read(self, data: Buffer) -> list[Any]:
        """Return the record batches of a stream, whose columns lie in `data`. Raises CodecError.

        They are checked: offsets and texts in them are valid. Unions, intervals with months, and
        extension types are refused, and compressed buffers, as they may expand to any size.
        """
        return finish(self.reading(data))

    def reading(self, data: Buffer) -> Generator[None, None, list[Any]]:
        """Read in slices: a generator that yields after each, and returns the batches."""
        if find_spec("pyarrow") is None:
            raise CodecError("the server has no pyarrow, so it takes no record batches")
        size = sys.maxsize if self._is_trusted else len(data)
        checker, batches, work = ColumnChecker(size), [], 0
        try:
            for batch in self._batches_in(data):
                batches.append(batch)
                work += _COLUMN
                for looked_at in checker.check(batch):
                    work += looked_at + _COLUMN
                    if work > _SLICE:
                        work = 0
                        yield
        except CodecError:
            raise
        except Exception as error:
            raise CodecError(f"no record batches: {type(error).__name__}: {error}") from error
        return batches

    def _batches_in(self, data: Buffer) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        buffer, data = pa.py_buffer(data), memoryview(data).cast("B")
        known = len(self._opening)
        if not known or bytes(data[:known]) != self._opening:
            known = self._open(data, buffer)
        messages = messages_in(data, known)
        kinds = {kind for _, _, kind in messages}
        if not kinds <= {DICTIONARY, BATCH}:
            raise CodecError(
                f"expected record batches behind a schema, got messages of kind {sorted(kinds)}"
            )
        if self._opening and DICTIONARY not in kinds:
            schema = self._schema
            for first, size, _ in messages:
                yield pa.ipc.read_record_batch(buffer.slice(first, size), schema)
            return
        with pa.ipc.open_stream(buffer) as reader:  # which knows of dictionaries
            yield from reader

    def _open(self, data: Buffer, buffer: pa.Buffer) -> int:
        """Read the schema; return where it ends."""
        import pyarrow as pa

        self._opening, self._schema = b"", None
        messages = messages_in(data)
        if not messages:
            raise CodecError("expected a schema and record batches, got no messages")
        first = buffer.slice(0, messages[0][1])
        schema = pa.ipc.read_schema(first)
        check_types(schema)
        if len(first) <= _LONGEST_KEPT and _is_plain(schema):
            self._opening, self._schema = first.to_pybytes(), schema
        return len(first)


def read_batches(data: Buffer, *, is_trusted: bool = False) -> list[Any]:
    """Return the record batches of one stream, as an `ArrowReader` does."""
    return ArrowReader(is_trusted=is_trusted).read(data)


def _is_plain(schema: pa.Schema) -> bool:
    """Tell whether a batch is one message: no column has a dictionary, however deep."""
    from pyarrow.types import is_dictionary, is_nested

    return not any(is_nested(kind) or is_dictionary(kind) for kind in schema.types)
