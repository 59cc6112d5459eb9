"""Record batches to bytes and back, as a stream of Arrow's IPC format."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.util import find_spec
from struct import Struct
from typing import TYPE_CHECKING, Any

from callboard.remote.errors import CodecError
from callboard.remote.frames import Buffer
from callboard.remote.texts import are_ascii, lie_within

if TYPE_CHECKING:
    import pyarrow as pa

_U16 = Struct("<H")
_I32 = Struct("<i")
_U32 = Struct("<I")
_I64 = Struct("<q")
_PREFIX = Struct("<Ii")  # of a message: a mark, and how long its metadata are
_SMALL = 4096  # bytes: to copy them costs less than another part of a write
_LONGEST_KEPT = 16 * 1024  # bytes of a schema that a reader keeps
_CONTINUATION = 0xFFFFFFFF
_END = _PREFIX.pack(-1 & 0xFFFFFFFF, 0)
# Of Message.fbs: the places of fields in their tables, and two kinds of header.
_HEADER_TYPE, _HEADER, _BODY = 1, 2, 3
_DATA, _COMPRESSION = 1, 3
_DICTIONARY, _BATCH = 2, 3


class _Parts:
    """A file that keeps what is written, without a copy of what is large."""

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
    """Writes the batches of one schema without dictionaries, each as a stream of its own."""

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


_kept = threading.local()  # a thread's last writer: to make one takes longer than to write


def write_batch(batch: pa.RecordBatch) -> tuple[Buffer, ...]:
    """Return the parts of the stream that has this batch alone, with its schema.

    Its columns are not copied. Raises CodecError.
    """
    import pyarrow as pa

    if not isinstance(batch, pa.RecordBatch):
        raise CodecError(f"send_batch() takes a pyarrow.RecordBatch, not a {type(batch).__name__}")
    schema = batch.schema
    writer: _Writer | None = getattr(_kept, "writer", None)
    _kept.writer = None  # until it has written: one that fails is of no use
    if writer is None or not writer.schema.equals(schema, check_metadata=True):
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

    def __init__(self) -> None:
        self._opening = b""  # of the last stream, if a batch of it is one message
        self._schema: pa.Schema | None = None

    def read(self, data: Buffer) -> list[Any]:
        """Return the record batches of a stream, whose columns lie in `data`. Raises CodecError.

        They are looked through: neither an offset nor a text in them can lead a reader astray.
        Buffers that are compressed are refused, as what they become could be of any size.
        """
        if find_spec("pyarrow") is None:
            raise CodecError("the server has no pyarrow, and takes no record batches")
        try:
            batches = self._batches_in(data)
            for batch in batches:
                if batch.num_rows > 8 * len(data):  # of nulls there may be any number
                    raise CodecError(f"{batch.num_rows} rows in {len(data)} bytes")
                batch.validate()
                for column in batch.columns:
                    _check(column)
        except CodecError:
            raise
        except Exception as error:
            raise CodecError(f"no record batches: {type(error).__name__}: {error}") from error
        return batches

    def _batches_in(self, data: Buffer) -> list[pa.RecordBatch]:
        import pyarrow as pa

        buffer = pa.py_buffer(data)
        known = len(self._opening)
        if not known or bytes(data[:known]) != self._opening:
            known = self._open(memoryview(data), buffer)
        messages = [
            pa.ipc.read_message(buffer.slice(first, size))
            for first, size in _messages_in(memoryview(data), known)
        ]
        types = {message.type for message in messages}
        if not types <= {"dictionary", "record batch"}:
            raise CodecError(f"no record batches behind the schema, but {sorted(types)}")
        if self._opening and "dictionary" not in types:
            return [pa.ipc.read_record_batch(message, self._schema) for message in messages]
        with pa.ipc.open_stream(buffer) as reader:  # which knows of dictionaries
            return list(reader)

    def _open(self, data: memoryview, buffer: pa.Buffer) -> int:
        """Read the schema; return where it ends."""
        import pyarrow as pa

        self._opening, self._schema = b"", None
        size = next((size for _, size in _messages_in(data)), 0)
        message = pa.ipc.read_message(buffer.slice(0, size))
        if message.type != "schema":
            raise CodecError(f"no schema with its record batches, but a {message.type}")
        schema = pa.ipc.read_schema(message)
        if size <= _LONGEST_KEPT and _is_plain(schema):
            self._opening, self._schema = bytes(data[:size]), schema
        return size


def read_batches(data: Buffer) -> list[Any]:
    """Return the record batches of one stream, as a `ArrowReader` does."""
    return ArrowReader().read(data)


def _is_plain(schema: pa.Schema) -> bool:
    """Tell whether a batch is one message: no column has a dictionary, however deep."""
    from pyarrow.types import is_dictionary, is_nested

    return not any(is_nested(kind) or is_dictionary(kind) for kind in schema.types)


def _messages_in(data: memoryview, at: int = 0) -> Iterator[tuple[int, int]]:
    """Yield where each message of a stream begins, from `at` on, and how long it is.

    pyarrow takes the lengths that it finds for granted, and ends the process where they are wrong.
    """
    while at < len(data):
        marker, size = _PREFIX.unpack_from(data, at)
        if marker != _CONTINUATION:
            raise CodecError(f"no message at {at}")
        if size == 0:
            return
        begin = at + _PREFIX.size
        if not 8 <= size <= len(data) - begin:
            raise CodecError(
                f"a message's metadata of {size} bytes, and {len(data) - begin} are there"
            )
        metadata = data[begin : begin + size]
        body = _body_length(metadata)
        if not 0 <= body <= len(data) - begin - size:
            raise CodecError(f"a message's body of {body} bytes, and fewer are there")
        if _is_compressed(metadata):
            raise CodecError("compressed record batches are not taken")
        yield at, _PREFIX.size + size + body
        at = begin + size + body


def _check(column: pa.Array) -> None:
    """Raise if a column's values are not where it says, or texts are none."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        present, offsets, letters = column.buffers()
        count = 0 if letters is None else len(letters)
        if letters is None or are_ascii(memoryview(letters).cast("B")):
            # Wherever they are cut, they are texts.
            if present is None and len(column):
                places = memoryview(offsets).cast("B")
                if lie_within(places, column.offset, len(column), count):
                    return
            column = column.view(pa.binary())
    column.validate(full=True)


def _body_length(metadata: memoryview) -> int:
    """Read in a Message's FlatBuffer how long the body behind it is."""
    at = _field(metadata, _U32.unpack_from(metadata)[0], _BODY)
    length: int = _I64.unpack_from(metadata, at)[0] if at else 0
    return length


def _is_compressed(metadata: memoryview) -> bool:
    """Read in a Message's FlatBuffer whether its record batch has a BodyCompression."""
    message = _U32.unpack_from(metadata)[0]
    kind = _field(metadata, message, _HEADER_TYPE)
    header = _field(metadata, message, _HEADER)
    if not kind or not header or metadata[kind] not in (_DICTIONARY, _BATCH):
        return False
    table = header + _U32.unpack_from(metadata, header)[0]
    if metadata[kind] == _DICTIONARY:
        inner = _field(metadata, table, _DATA)
        if not inner:
            return False
        table = inner + _U32.unpack_from(metadata, inner)[0]
    return _field(metadata, table, _COMPRESSION) != 0


def _field(data: memoryview, table: int, place: int) -> int:
    """Return where a table's field lies; 0 if it has none. Raises struct.error beyond the data."""
    layout = table - _I32.unpack_from(data, table)[0]
    if layout < 0:
        raise CodecError(f"a table at {table} has its layout at {layout}")
    at = 4 + 2 * place
    if at >= _U16.unpack_from(data, layout)[0]:
        return 0
    offset: int = _U16.unpack_from(data, layout + at)[0]
    return table + offset if offset else 0
