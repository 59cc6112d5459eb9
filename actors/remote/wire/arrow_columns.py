"""Checks whether record batches from untrusted senders are valid.

The work of a check must be bounded by the number of bytes. The same data can be referred to many
times, by views, and by batches and columns with one dictionary. Values without bytes, such as
nulls, can have any number.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Any

from callboard.remote.errors import CodecError
from callboard.remote.wire.texts import (
    are_ascii,
    are_utf8,
    lie_within,
    views_cut_between_letters,
    views_lie_within,
)

if TYPE_CHECKING:
    import pyarrow as pa

_BITS = 8  # the maximum number of values in a byte, if they take any space
_WEIGHTLESS = 64  # values for a byte, of all columns together
_TIMES = 16  # how often all bytes of the data may be checked
_SPARE = 1 << 20  # bytes that may be checked beside that


class _Shape(Enum):
    PLAIN = auto()
    TEXTS = auto()
    VIEWS_OF_TEXTS = auto()
    VIEWS = auto()
    DEEP = auto()
    """With nested columns."""


_shapes: dict[int, _Shape] = {}  # by the numbers of types, as a cache

# All others are refused, and maps whose keys are null. pyarrow's validation passes an empty union,
# whose `nbytes` ends the process; so does `to_numpy()` of an interval with months, and `view()` of
# such a map. The code of an extension type reads unchecked data.
_TYPES = (
    "NA", "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
    "HALF_FLOAT", "FLOAT", "DOUBLE", "DECIMAL32", "DECIMAL64", "DECIMAL128", "DECIMAL256",
    "DATE32", "DATE64", "TIME32", "TIME64", "TIMESTAMP", "DURATION", "STRING", "LARGE_STRING",
    "STRING_VIEW", "BINARY", "LARGE_BINARY", "BINARY_VIEW", "FIXED_SIZE_BINARY", "LIST",
    "LARGE_LIST", "FIXED_SIZE_LIST", "LIST_VIEW", "LARGE_LIST_VIEW", "STRUCT", "MAP",
    "DICTIONARY", "RUN_END_ENCODED",
)  # fmt: skip


@cache
def _numbers() -> frozenset[int]:
    from pyarrow import lib

    # Older versions of pyarrow have no decimals of 32 and 64 bits.
    return frozenset(getattr(lib, f"Type_{name}", -1) for name in _TYPES)


def check_types(schema: pa.Schema) -> None:
    """Refuse columns of other types. Raises CodecError, which names the column."""
    for field in schema:
        for kind in _types_in(field.type):
            if kind.id not in _numbers() or _ends_a_process(kind):
                within = "" if kind is field.type else f", in {field.type}"
                raise CodecError(
                    f"column {field.name!r} has the type {kind}{within}: unions, intervals with "
                    "months, maps of nulls, runs of list views, and extension types are not taken"
                )


def _ends_a_process(kind: Any) -> bool:
    """Tell whether a method of pyarrow 26 aborts for a valid array of the type."""
    from pyarrow import types

    if types.is_run_end_encoded(kind):
        values = kind.value_type
        return bool(types.is_list_view(values) or types.is_large_list_view(values))
    return bool(types.is_map(kind) and types.is_null(kind.key_type))


def _types_in(kind: Any) -> Iterator[Any]:
    """Yield a type, and all nested types."""
    from pyarrow import types

    yield kind
    if types.is_dictionary(kind):
        yield from _types_in(kind.value_type)
    elif kind.id in _numbers():
        for at in range(kind.num_fields):
            yield from _types_in(kind.field(at).type)


def _shape_of(kind: pa.DataType) -> _Shape:
    found = _shapes.get(kind.id)
    if found is None:
        from pyarrow import types

        found = _Shape.PLAIN
        if types.is_string(kind):
            found = _Shape.TEXTS
        elif types.is_string_view(kind):
            found = _Shape.VIEWS_OF_TEXTS
        elif types.is_binary_view(kind):
            found = _Shape.VIEWS
        elif types.is_nested(kind) or types.is_dictionary(kind) or types.is_run_end_encoded(kind):
            found = _Shape.DEEP
        _shapes[kind.id] = found
    return found


class ColumnChecker:
    """Checks the columns of all batches of a message."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values = 0
        self._bytes = 0  # that columns refer to

    def check(self, batch: pa.RecordBatch) -> Iterator[int]:
        """Check a batch, and yield the size of each column after its check.

        Raises CodecError, which names the column and its type, and pyarrow's errors.
        """
        if batch.num_rows > _BITS * self._size:  # of nulls there may be any number
            raise CodecError(f"{batch.num_rows} rows in {self._size} bytes")
        batch.validate()
        for at, column in enumerate(batch.columns):
            size = column.get_total_buffer_size()
            try:
                self._look_through(column, size)
            except Exception as error:
                field = batch.schema.field(at)
                raise CodecError(f"column {field.name!r} of type {field.type}: {error}") from error
            yield size

    def _look_through(self, column: pa.Array, size: int) -> None:
        """Raise if a column has invalid offsets, invalid texts, or too many values."""
        self._note_bytes(size)
        shape = _shape_of(column.type)
        if shape is not _Shape.DEEP:
            self._note_values(len(column))
            _check_layout(column, shape)
            if shape is _Shape.TEXTS:
                column = _without_letters(column)
            elif shape is _Shape.VIEWS_OF_TEXTS:
                column = self._without_views(column)
        else:
            for each in _arrays_in(column):
                self._note_values(len(each))
                shape = _shape_of(each.type)
                if shape in (_Shape.VIEWS, _Shape.VIEWS_OF_TEXTS):
                    self._note_bytes(_size_of_views(each))
                _check_layout(each, shape)
        if column is not None:
            column.validate(full=True)

    def _note_values(self, count: int) -> None:
        self._values += count
        if count > _BITS * self._size or self._values > _WEIGHTLESS * self._size:
            raise CodecError(f"{self._values} values in {self._size} bytes")

    def _note_bytes(self, count: int) -> None:
        self._bytes += count
        if self._bytes > _TIMES * self._size + _SPARE:
            raise CodecError(
                f"its values refer to parts of {self._size} bytes so often that they come to "
                f"{self._bytes} bytes"
            )

    def _without_views(self, column: pa.Array) -> pa.Array:
        """Return a column of views as bytes if its texts are valid."""
        import pyarrow as pa

        _, views, *letters = column.buffers()
        places = memoryview(views).cast("B")
        if all(are_utf8(memoryview(each).cast("B")) for each in letters) and (
            views_cut_between_letters(places, column.offset, len(column), letters)
        ):
            return column.view(pa.binary_view())
        self._note_bytes(_size_of_views(column))
        return column


def _check_layout(array: Any, shape: _Shape) -> None:
    """Check what pyarrow's functions rely on, and its validation does not check.

    Raises CodecError for a view beyond its buffers, and for an empty list with a wrong offset.
    """
    from pyarrow import types

    kind = array.type
    if shape in (_Shape.VIEWS, _Shape.VIEWS_OF_TEXTS):
        _, views, *letters = array.buffers()
        places = memoryview(views or b"").cast("B")
        if not views_lie_within(places, array.offset, len(array), [len(each) for each in letters]):
            raise CodecError("a view refers to bytes beyond its buffer")
    elif not len(array) and any(
        is_such(kind) for is_such in (types.is_list, types.is_large_list, types.is_map)
    ):
        width = 8 if types.is_large_list(kind) else 4
        values = len(array.keys if types.is_map(kind) else array.values)
        at = array.offset * width
        data = bytes(memoryview(array.buffers()[1] or b"").cast("B")[at : at + width])
        offset = int.from_bytes(data, "little", signed=True)
        if len(data) < width or not 0 <= offset <= values:
            raise CodecError(f"an empty list begins at {offset} of {values} values")


def _without_letters(column: pa.Array) -> pa.Array | None:
    """Return a column of ASCII texts as bytes; None if its offsets are valid, too."""
    import pyarrow as pa

    present, offsets, letters = column.buffers()
    count = 0 if letters is None else len(letters)
    if letters is not None and not are_ascii(memoryview(letters).cast("B")):
        return column
    # ASCII is valid wherever it is cut.
    if present is None and len(column):
        places = memoryview(offsets).cast("B")
        if lie_within(places, column.offset, len(column), count):
            return None
    return column.view(pa.binary())


def _size_of_views(column: pa.Array) -> int:
    """Return the sum of the lengths of a column's views."""
    views = column.buffers()[1]
    lengths = memoryview(views).cast("B").cast("i")[0::4].tolist() if views else []
    return sum(length for length in lengths if length > 0)


def _arrays_in(column: Any) -> Iterator[Any]:
    """Yield a column, and all nested columns."""
    from pyarrow import types

    yield column
    kind = column.type
    parts: list[Any] = []
    if types.is_dictionary(kind):
        parts = [column.dictionary]
    elif types.is_run_end_encoded(kind):
        parts = [column.run_ends, column.values]
    elif types.is_map(kind):
        parts = [column.keys, column.items]
    elif types.is_struct(kind):
        parts = [column.field(at) for at in range(kind.num_fields)]
    elif types.is_nested(kind):
        parts = [column.values]
    for part in parts:
        yield from _arrays_in(part)
