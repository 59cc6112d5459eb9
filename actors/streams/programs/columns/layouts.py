"""Layouts of the columns of Arrow batches while their rows are gathered.

Inside, texts, bytes and lists have offsets of 64 bits, so that any rows fit together, and there are
no dictionaries, which differ from batch to batch. Outside, a column is as it came, with two
exceptions. Views and run ends are plain, since Arrow cannot gather them. A dictionary's numbers
have 32 bits, so that there is room for the values of other batches. Two batches whose columns are
the same outside have the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from callboard.core.text import safe_repr

# The limit of 32-bit offsets: for a column's texts, bytes or lists, in one batch.
MOST_BYTES = 2**31 - 1


class BatchLayout(NamedTuple):
    """The column layouts of a stream's batches: as they came last, outside, and inside."""

    given: Any
    outside: Any
    inside: Any


def layout_of(stream: int, batch: Any, known: BatchLayout | None, expected: Any) -> BatchLayout:
    """Return the layout of a stream's next batch.

    Raises TypeError unless it has the names and the types that are expected, of the outside.
    """
    import pyarrow as pa

    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(
            f"stream {stream + 1}: its rows must be Arrow record batches, got {safe_repr(batch)}"
        )
    if known is not None and batch.schema.equals(known.given):
        return known
    schema = outside(batch.schema)
    if expected is not None and _columns_in(schema) != _columns_in(expected):
        raise TypeError(
            f"stream {stream + 1}: its columns are {_columns_in(schema)}, and were "
            f"{_columns_in(expected)}"
        )
    if known is not None:
        return known._replace(given=batch.schema)
    return BatchLayout(batch.schema, schema, inside(schema))


def outside(schema: Any) -> Any:
    """Return the columns, without metadata, that rows of some columns go out with."""
    import pyarrow as pa

    return pa.schema([pa.field(f.name, _outside(f.type), f.nullable) for f in schema])


def inside(schema: Any) -> Any:
    """Return the columns that rows are gathered in which go out with others."""
    import pyarrow as pa

    return pa.schema([(field.name, _inside(field.type)) for field in schema])


def in_common(schemas: list[Any], *, are_all: bool) -> Any:
    """Return the columns of rows of several streams, which differ in what may be null.

    Unless these are all, another stream may bring nulls yet.
    """
    import pyarrow as pa

    return pa.schema(
        [
            fields[0].with_nullable(not are_all or any(field.nullable for field in fields))
            for fields in zip(*schemas, strict=True)
        ]
    )


def taken_in(stream: int, batch: Any, layout: BatchLayout, *, is_first: bool) -> Any:
    """Lay a batch out as inside.

    Raises TypeError for a column of which Arrow cannot gather rows, and ValueError for a null
    in one that is `not null`.
    """
    import pyarrow as pa

    columns = []
    fields = zip(layout.outside, layout.inside, batch.columns, strict=True)
    for outer, inner, column in fields:
        try:
            laid_out = _laid_out(column, inner.type)
            if is_first:
                laid_out.slice(0, 0).take(pa.array([], pa.int64()))
        except pa.ArrowNotImplementedError as error:
            raise TypeError(
                f"{place(stream, outer.name)}: Arrow cannot gather rows of {column.type}: {error}"
            ) from error
        if laid_out.null_count and not outer.nullable:
            row = laid_out.is_null().index(True).as_py()
            raise ValueError(
                f"{place(stream, outer.name)}, row {row}: null in a column that is not null"
            )
        columns.append(laid_out)
    return pa.RecordBatch.from_arrays(columns, schema=layout.inside)


def plain(column: Any) -> Any:
    """Return a column as it would go out. Raises ArrowNotImplementedError."""
    outer = _outside(column.type)
    return _as_it_came(_laid_out(column, _inside(outer)), outer)


def handed_out(batch: Any, schema: Any) -> Iterator[Any]:
    """Make a batch of the inside one of the outside; or several, if one has no room for it."""
    import pyarrow as pa

    changed = [at for at, field in enumerate(schema) if batch.schema.field(at).type != field.type]
    if len(batch) > 1 and any(batch.column(at).nbytes > MOST_BYTES for at in changed):
        half = len(batch) // 2
        yield from handed_out(batch.slice(0, half), schema)
        yield from handed_out(batch.slice(half), schema)
        return
    columns = batch.columns
    for at in changed:
        columns[at] = _as_it_came(columns[at], schema.field(at).type)
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def place(stream: int, name: str) -> str:
    """Describe the place of an error."""
    return f"stream {stream + 1}, column {safe_repr(name)}"


def _columns_in(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _outside(arrow: Any) -> Any:
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_dictionary(arrow):
        values = _outside_within(arrow.value_type)
        return values if a.is_nested(values) else pa.dictionary(pa.int32(), values)
    return _outside_within(arrow)


def _outside_within(arrow: Any) -> Any:
    """Return the type of values of a nested type: a dictionary of texts or bytes, if it is one."""
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_string_view(arrow):
        return pa.string()
    if a.is_binary_view(arrow):
        return pa.binary()
    if a.is_run_end_encoded(arrow):
        return _outside(arrow.value_type)
    if a.is_dictionary(arrow):
        values = _outside_within(arrow.value_type)
        return pa.dictionary(pa.int32(), values) if _is_text(values) else values
    return _nested(arrow, _outside_within)


def _inside(arrow: Any) -> Any:
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_string(arrow):
        return pa.large_string()
    if a.is_binary(arrow):
        return pa.large_binary()
    if a.is_dictionary(arrow):
        return _inside(arrow.value_type)
    if a.is_list(arrow):
        return pa.large_list(_field(arrow.value_field, _inside))
    return _nested(arrow, _inside)


def _nested(arrow: Any, change: Callable[[Any], Any]) -> Any:
    """Return a type whose fields are changed, and lists that are no views; others as they are."""
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_list(arrow) or a.is_list_view(arrow):
        return pa.list_(_field(arrow.value_field, change))
    if a.is_large_list(arrow) or a.is_large_list_view(arrow):
        return pa.large_list(_field(arrow.value_field, change))
    if a.is_fixed_size_list(arrow):
        return pa.list_(_field(arrow.value_field, change), arrow.list_size)
    if a.is_struct(arrow):
        return pa.struct([_field(each, change) for each in arrow])
    if a.is_map(arrow):
        key, item = _field(arrow.key_field, change), _field(arrow.item_field, change)
        return pa.map_(key, item, arrow.keys_sorted)
    return arrow


def _field(field: Any, change: Callable[[Any], Any]) -> Any:
    return field.with_type(change(field.type))


def _is_text(arrow: Any) -> bool:
    import pyarrow.types as a

    checks = (a.is_string, a.is_large_string, a.is_binary, a.is_large_binary)
    return any(check(arrow) for check in checks)


def _laid_out(column: Any, arrow: Any) -> Any:
    """Return a column as a type of the inside. Raises ArrowNotImplementedError."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as a

    if column.type == arrow:
        return column
    if a.is_run_end_encoded(column.type):
        return _laid_out(pc.run_end_decode(column), arrow)
    if a.is_dictionary(column.type):
        return _laid_out(column.dictionary, arrow).take(column.indices)
    if a.is_large_list(arrow):  # not by a cast: pyarrow 26 makes wrong lists of views
        ends = np.cumsum(pc.list_value_length(column).fill_null(0).to_numpy(), dtype=np.int64)
        values = _laid_out(column.flatten(), arrow.value_type)
        offsets = pa.array(np.concatenate([[0], ends]), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, values, type=arrow, mask=column.is_null())
    if a.is_fixed_size_list(arrow):
        values = column.values.slice(column.offset * arrow.list_size, len(column) * arrow.list_size)
        values = _laid_out(values, arrow.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=arrow, mask=column.is_null())
    if a.is_struct(arrow):
        fields = [_laid_out(column.field(at), field.type) for at, field in enumerate(arrow)]
        return pa.StructArray.from_arrays(fields, fields=[*arrow], mask=column.is_null())
    if a.is_map(arrow):
        offsets = pa.array(column.offsets.to_numpy(), pa.int32())
        keys = _laid_out(column.keys, arrow.key_type)
        items = _laid_out(column.items, arrow.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, arrow, mask=column.is_null())
    return column.cast(arrow)


def _as_it_came(column: Any, arrow: Any) -> Any:
    """Return a column of the inside as a type of the outside, for which it is small enough."""
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_dictionary(arrow):
        column = column.dictionary_encode()
    try:
        return column.cast(arrow)
    except pa.ArrowInvalid:  # a piece of texts whose places in all of them take more than 32 bits
        return column.take(pa.array(range(len(column)), pa.int64())).cast(arrow)
