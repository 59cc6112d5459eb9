"""Converts record batches to rows, and rows to record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from callboard.core.text import safe_repr
from callboard.spark.errors import SchemaError
from callboard.spark.frames.schema import arrow_schema, checked
from callboard.spark.frames.times import in_known_zones, of_times

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

PIECE = 1024  # rows that are converted from a batch at once, and that are gathered into one


def pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut batches, to convert few rows at a time, in time zones that Python knows."""
    for batch in map(in_known_zones, batches):
        for at in range(0, batch.num_rows, PIECE):
            yield batch.slice(at, PIECE)


def dicts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches as dictionaries. Raises SchemaError for two columns of a name."""
    for piece in pieces(batches):
        names = piece.schema.names
        if len({*names}) < len(names):
            raise SchemaError(f"a dictionary has no place for two columns of one name: {names}")
        yield from piece.to_pylist()


def tuples_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of batches as tuples."""
    for piece in pieces(batches):
        columns = [column.to_pylist() for column in piece.columns]
        yield from zip(*columns, strict=True) if columns else [()] * piece.num_rows


def plain_rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return the rows of a batch as Spark's own conversions need them: maps are dictionaries."""
    columns = [[*map(_of_maps(column.type), column.to_pylist())] for column in batch.columns]
    return [*zip(*columns, strict=True)]


def _of_maps(arrow: pa.DataType) -> Callable[[Any], Any]:
    """Return a function that makes dictionaries of a type's maps, which Arrow has as lists of
    pairs.
    """
    import pyarrow.types as a

    if a.is_map(arrow):
        inside = _of_maps(arrow.item_type)
        return lambda pairs: pairs and {key: inside(each) for key, each in pairs}
    if a.is_list(arrow):
        inside = _of_maps(arrow.value_type)
        return lambda values: values and [*map(inside, values)]
    if a.is_struct(arrow):
        fields = {field.name: _of_maps(field.type) for field in arrow}
        return lambda value: value and {name: fields[name](value[name]) for name in value}
    return lambda value: value


def batches_of(outputs: Iterable[Any], schema: StructType | None) -> Iterator[pa.RecordBatch]:
    """Yield outputs as batches; rows among them are gathered into batches.

    With a schema, rows are dictionaries or tuples with its columns, and batches are checked against
    it. SchemaError names what does not fit, and rows without a schema.
    """
    if schema is None:
        return _gathered(outputs, None)
    return checked(_gathered(outputs, arrow_schema(schema)), schema, "the graph put out")


def _gathered(outputs: Iterable[Any], schema: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    rows: list[tuple[Any, ...]] = []
    for output in outputs:
        is_row = not isinstance(output, pa.RecordBatch | pa.Table)
        if is_row:
            if schema is None:
                raise SchemaError(
                    "expected a record batch or a table as an output, or a row with schema=, got "
                    f"{safe_repr(output)}"
                )
            rows.append(row_of(schema.names, output))
        if rows and (len(rows) == PIECE or not is_row):
            yield record_batch(schema, rows)
            rows = []
        if not is_row:
            yield from [output] if isinstance(output, pa.RecordBatch) else output.to_batches()
    if rows:
        yield record_batch(schema, rows)


def row_of(names: list[str], row: Any, what: str = "an output") -> tuple[Any, ...]:
    """Return a row, a dictionary or a tuple with these columns, as a tuple; raise SchemaError."""
    if isinstance(row, tuple) and len(row) == len(names):
        return row
    if isinstance(row, dict) and row.keys() == {*names}:
        return tuple([row[name] for name in names])
    raise SchemaError(
        f"{what} must be a dictionary or a tuple with the columns {names}, got {safe_repr(row)}"
    )


def record_batch(
    schema: pa.Schema, rows: list[tuple[Any, ...]], what: str = "an output"
) -> pa.RecordBatch:
    """Return rows as a batch. A value that does not fit is a SchemaError with its column.

    A naive datetime in a column of instants is in the process's own zone, as for Spark.
    """
    import pyarrow as pa

    columns = []
    for at, field in enumerate(schema):
        values = [row[at] for row in rows]
        try:
            timed = of_times(field.type)
            columns.append(pa.array(map(timed, values) if timed else values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f"{what} does not fit column {field.name!r}, which is {field.type}: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
