"""Keys of rows, which decide their shards, and record batches divided by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.remote.errors import CodecError
from callboard.remote.sharding.key_hash import (
    hash_numbers,
    hash_runs,
    hash_tuples,
    hash_words,
    key_hash,
    mark_nulls,
    places_of_shards,
)

if TYPE_CHECKING:
    import pyarrow as pa


By = str | Sequence[str] | Callable[[Any], Any]
"""A column's name; several, whose values in a tuple are the key; or a function of the row."""


class ShardKey:
    """The division of rows among a number of shards."""

    def __init__(self, by: By, shards: int) -> None:
        """Take a column, several, or a function as the key. Raises ConfigError for others."""
        self.shards = shards
        self.names: list[str] | None = None
        """The columns of the key; None if it is a function's."""
        self.is_tuple = False
        """Whether the key is a tuple with a value of each column."""
        if callable(by):
            self._key_of: Callable[[Any], Any] = by
            return
        self.is_tuple = not isinstance(by, str)
        try:
            self.names = names = [by] if isinstance(by, str) else list(by)
        except TypeError:
            names = []
        if not names or not all(isinstance(name, str) for name in names):
            raise ConfigError(
                "by= expects a column's name, several names, or a function of the row, got "
                + safe_repr(by)
            )
        if self.is_tuple:
            self._key_of = lambda row: tuple([_field(row, name) for name in names])
        else:
            self._key_of = lambda row: _field(row, names[0])

    def of_row(self, row: Any) -> int:
        """Return the shard of a row. Raises CodecError, and what the function raises."""
        return self.hash_of_row(row) % self.shards

    def hash_of_row(self, row: Any) -> int:
        """Return the hash of a row's key. Raises like `of_row`."""
        return key_hash(self._key_of(row))

    def divide(self, rows: Iterable[Any]) -> list[list[Any]]:
        """Return the rows of each shard, in their order. Raises like `of_row`."""
        parts: list[list[Any]] = [[] for _ in range(self.shards)]
        for row in rows:
            parts[self.of_row(row)].append(row)
        return parts


def shard_of(key: Any, shards: int) -> int:
    """Return the number of the shard of a key among `shards`: its hash modulo `shards`.

    It is the same in every process, and for equal keys. Raises CodecError for an invalid key, and
    ValueError for a number of shards below 1.
    """
    return key_hash(key) % checks.whole("the number of shards", shards)


def _field(row: Any, name: str) -> Any:
    try:
        return row[name] if isinstance(row, dict) else getattr(row, name)
    except (KeyError, AttributeError):
        raise CodecError(
            f"a row has no {name!r}, which decides its shard: {safe_repr(row)}"
        ) from None


def divide_batch(batch: pa.RecordBatch, key: ShardKey) -> list[pa.RecordBatch]:
    """Return the rows of each shard, in their order.

    A row has the shard that it would have as a row in Python, with the values that Arrow converts
    to. Columns of views and run ends become plain ones. Raises CodecError for a column that is
    missing, is no key, or of which Arrow cannot take rows; ConfigError if the key is a function.
    """
    import pyarrow as pa

    if key.names is None:
        raise ConfigError("a record batch is divided by a column: give its name as by=")
    if not isinstance(batch, pa.RecordBatch):
        raise CodecError(
            f"send_batch() expects a pyarrow.RecordBatch, got a {type(batch).__name__}"
        )
    hashes = [_hashes(_column(batch, name), name) for name in key.names]
    batch = _divisible(batch)
    of_rows = hash_tuples(hashes, batch.num_rows) if key.is_tuple else hashes[0]
    parts = []
    for places in places_of_shards(of_rows, key.shards):
        size = len(places) // 8
        if size == batch.num_rows:
            parts.append(batch)
        else:
            numbers = pa.Array.from_buffers(pa.int64(), size, [None, pa.py_buffer(places)])
            parts.append(batch.take(numbers))
    return parts


def _divisible(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert columns of which Arrow cannot take rows, such as views and run ends."""
    import pyarrow as pa

    none = pa.array([], pa.int64())
    try:
        batch.slice(0, 0).take(none)
        return batch
    except pa.ArrowNotImplementedError:
        pass
    columns, schema = batch.columns, batch.schema
    for at, column in enumerate(columns):
        try:
            column.slice(0, 0).take(none)
        except pa.ArrowNotImplementedError:
            columns[at] = _plain(column, schema.names[at])
            schema = schema.set(at, schema.field(at).with_type(columns[at].type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(column: pa.Array, name: str) -> pa.Array:
    import pyarrow as pa

    from callboard.streams.programs.columns.layouts import plain

    try:
        found = plain(column)
        found.slice(0, 0).take(pa.array([], pa.int64()))
        return found
    except pa.ArrowNotImplementedError as error:
        raise CodecError(
            f"column {name!r}: Arrow cannot take rows of {column.type}: {error}"
        ) from error


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        raise CodecError(
            f"a batch has {len(found)} columns {name!r}, which decide the shards of its rows: "
            f"{batch.schema.names}"
        )
    return batch.column(found[0])


def _hashes(column: pa.Array, name: str) -> bytearray:
    """Return the hashes of a column's values, 8 bytes each."""
    import pyarrow as pa

    try:
        return _hashes_of(column)
    except (pa.ArrowException, CodecError) as error:
        raise CodecError(f"column {name!r}, of {column.type}, cannot be a key: {error}") from error


def _hashes_of(column: pa.Array) -> bytearray:
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        return _hashes_of(column.dictionary_decode())
    if types.is_uint64(kind):
        return _of_words("uint64", column)
    if types.is_boolean(kind) or types.is_integer(kind):
        return _of_words("int64", column.cast(pa.int64()))
    if types.is_floating(kind):
        return _of_words("double", column.cast(pa.float64()))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _of_runs("text", column.cast(pa.large_string()))
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    ):
        return _of_runs("bytes", column.cast(pa.large_binary()))
    if types.is_timestamp(kind):  # a cast that would lose nanoseconds raises
        zone = "local" if kind.tz is None else "time"
        return _of_words(zone, column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()))
    if types.is_date(kind):
        return _of_words("day", column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()))
    if types.is_duration(kind):
        return _of_words("duration", column.cast(pa.duration("us")).cast(pa.int64()))
    return _of_objects(column)


def _of_words(what: str, column: pa.Array) -> bytearray:
    validity, values = column.buffers()
    hashing = hash_numbers if what in ("int64", "uint64", "double") else hash_words
    hashes = hashing(what, _bytes(values), column.offset, len(column))
    return _with_nulls(column, validity, hashes)


def _of_runs(kind: str, column: pa.Array) -> bytearray:
    validity, offsets, data = column.buffers()
    hashes = hash_runs(kind, _bytes(offsets), _bytes(data), column.offset, len(column))
    return _with_nulls(column, validity, hashes)


def _of_objects(column: pa.Array) -> bytearray:
    """Hash decimals, nulls, and other values that are keys in Python; other types raise."""
    hashes = bytearray()
    for value in column.to_pylist():
        hashes += key_hash(value).to_bytes(8, "little")
    return hashes


def _with_nulls(column: pa.Array, validity: pa.Buffer | None, hashes: bytearray) -> bytearray:
    if validity is not None and column.null_count:
        mark_nulls(hashes, _bytes(validity), column.offset)
    return hashes


def _bytes(buffer: pa.Buffer | None) -> memoryview:
    """Return the bytes of a buffer, unsigned."""
    return memoryview(b"" if buffer is None else buffer).cast("B")
