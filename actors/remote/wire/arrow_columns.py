"""Checks of record batches from untrusted senders: whether they are what they say.

To look must not take long, however few bytes there are. Data that is there once can be referred to
many times, by views, and by batches and columns with one dictionary. Values that take no bytes,
such as nulls, can be as many as a number says.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from callboard.remote.errors import CodecError
from callboard.remote.wire.texts import are_ascii, are_utf8, lie_within, views_cut_between_letters

if TYPE_CHECKING:
    import pyarrow as pa

_BITS = 8  # values in a byte: there cannot be more of those that take any
_WEIGHTLESS = 64  # values for a byte, of all columns together
_TIMES = 16  # how often all bytes of the data may be looked at
_SPARE = 1 << 20  # and so many more


class _Shape(Enum):
    PLAIN = auto()
    TEXTS = auto()
    VIEWS_OF_TEXTS = auto()
    VIEWS = auto()
    DEEP = auto()
    """With other columns within it."""


_shapes: dict[int, _Shape] = {}  # by the numbers of types: these are asked for each column


def _shape_of(kind: pa.DataType) -> _Shape:
    found = _shapes.get(kind.id)
    if found is None:
        import pyarrow as pa
        from pyarrow import types

        found = _Shape.PLAIN
        if types.is_string(kind):
            found = _Shape.TEXTS
        elif types.is_string_view(kind):
            found = _Shape.VIEWS_OF_TEXTS
        elif types.is_binary_view(kind):
            found = _Shape.VIEWS
        elif (
            types.is_nested(kind)
            or types.is_dictionary(kind)
            or types.is_run_end_encoded(kind)
            or isinstance(kind, pa.BaseExtensionType)
        ):
            found = _Shape.DEEP
        _shapes[kind.id] = found
    return found


class ColumnChecker:
    """Looks through the columns of all batches that came in so many bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values = 0
        self._bytes = 0  # which columns refer to

    def check(self, batch: pa.RecordBatch) -> Iterator[int]:
        """Look through a batch, and give how many bytes each column has, behind the look.

        Raises CodecError, which names the column and its type, and what pyarrow raises.
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
        """Raise if a column's values are not where it says, or texts are none, or are too many."""
        self._note_bytes(size)
        shape = _shape_of(column.type)
        if shape is not _Shape.DEEP:
            self._note_values(len(column))
            if shape is _Shape.TEXTS:
                column = _without_letters(column)
            elif shape is _Shape.VIEWS_OF_TEXTS:
                column = self._without_views(column)
        else:
            for each in _arrays_in(column):
                self._note_values(len(each))
                if _shape_of(each.type) in (_Shape.VIEWS, _Shape.VIEWS_OF_TEXTS):
                    self._note_bytes(_size_of_views(each))
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
                f"its values refer to parts of {self._size} bytes so often that these are "
                f"{self._bytes} bytes"
            )

    def _without_views(self, column: pa.Array) -> pa.Array:
        """Return a column of views without what was found to be texts."""
        import pyarrow as pa

        _, views, *letters = column.buffers()
        places = memoryview(views).cast("B")
        if all(are_utf8(memoryview(each).cast("B")) for each in letters) and (
            views_cut_between_letters(places, column.offset, len(column), letters)
        ):
            return column.view(pa.binary_view())
        self._note_bytes(_size_of_views(column))
        return column


def _without_letters(column: pa.Array) -> pa.Array | None:
    """Return a column of texts without what is known of its letters; None if all is known."""
    import pyarrow as pa

    present, offsets, letters = column.buffers()
    count = 0 if letters is None else len(letters)
    if letters is not None and not are_ascii(memoryview(letters).cast("B")):
        return column
    # Wherever they are cut, they are texts.
    if present is None and len(column):
        places = memoryview(offsets).cast("B")
        if lie_within(places, column.offset, len(column), count):
            return None
    return column.view(pa.binary())


def _size_of_views(column: pa.Array) -> int:
    """Return how many bytes the views of a column come to, wherever they lie."""
    views = column.buffers()[1]
    lengths = memoryview(views).cast("B").cast("i")[0::4].tolist() if views else []
    return sum(length for length in lengths if length > 0)


def _arrays_in(column: Any) -> Iterator[Any]:
    """Give a column, and all the columns within it, however deep."""
    import pyarrow as pa
    from pyarrow import types

    yield column
    kind = column.type
    parts: list[Any] = []
    if isinstance(kind, pa.BaseExtensionType):
        parts = [column.storage]
    elif types.is_dictionary(kind):
        parts = [column.dictionary]
    elif types.is_run_end_encoded(kind):
        parts = [column.run_ends, column.values]
    elif types.is_map(kind):
        parts = [column.keys, column.items]
    elif types.is_struct(kind) or types.is_union(kind):
        parts = [column.field(at) for at in range(kind.num_fields)]
    elif types.is_nested(kind):
        parts = [column.values]
    for part in parts:
        yield from _arrays_in(part)
