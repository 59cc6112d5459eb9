"""Between rows and Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.rows.batches import frame_rows, is_table, iterator_over, refuse_duplicate_columns
from callboard.streams.checks import MOST
from callboard.streams.errors import GraphError
from callboard.streams.programs.columns.fitting_rows import FittingRows, batch_of_all


def rows_of(batch: Any) -> Iterable[Any]:
    """List the rows of an Arrow batch, a table or a frame as dictionaries, or an array's items.

    Raises TypeError for what has neither, and ValueError if two columns have one name.
    """
    rows: list[Any]
    if hasattr(batch, "read_all"):  # the batches of a reader
        batch = batch.read_all()
    if is_table(batch) or hasattr(batch, "to_pylist"):
        refuse_duplicate_columns(batch)
    for method in ("to_pylist", "to_dicts", "tolist"):
        if hasattr(batch, method):
            rows = getattr(batch, method)()
            return rows
    if is_table(batch) and hasattr(batch, "itertuples"):  # of pandas
        return frame_rows(batch)
    if isinstance(batch, str | bytes | bytearray | Mapping):
        raise TypeError(f"rows() wants batches, arrays or lists, not {safe_repr(batch)}")
    return [*iterator_over("rows()", batch)]


def batches(table: Any, n: int = 8_192) -> Iterator[Any]:
    """Give the rows of a table as Arrow batches, of `n` rows at most.

    `table` is a frame of pandas or Polars, a relation of DuckDB, an Arrow table, batch or reader,
    or a NumPy array with named fields. An index of pandas is left out. Raises TypeError for
    anything else, and ValueError if two columns have one name. Needs pyarrow.
    """
    n = checks.whole("n", n, most=MOST)
    refuse_duplicate_columns(table)
    return _cut(_arrow_batches(table), n)


def _cut(whole: Iterable[Any], n: int) -> Iterator[Any]:
    for batch in whole:
        for at in range(0, len(batch), n):
            yield batch.slice(at, n)


def _arrow_batches(table: Any) -> Iterable[Any]:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        return [table]
    if isinstance(table, pa.RecordBatchReader):
        return (batch for batch in table)
    names = getattr(getattr(table, "dtype", None), "names", None)
    if names:
        table = pa.table({name: table[name] for name in names})
    elif is_table(table) and hasattr(type(table), "to_arrow"):
        table = table.to_arrow()
    elif is_table(table) and hasattr(table, "itertuples"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    elif is_table(table) and hasattr(type(table), "fetchall"):  # of DuckDB
        return (batch for batch in pa.RecordBatchReader.from_stream(table))
    if not isinstance(table, pa.Table):
        raise TypeError(f"batches() wants a table or a frame, not {safe_repr(table)}")
    return (batch for batch in table.to_batches())


def batch_of(schema: Any = None) -> Callable[[list[Any]], tuple[Any, dict[int, Exception]]]:
    """Make a function from rows to an Arrow batch of those that fit, or None, and the errors of the
    others by their places. It needs pyarrow. Raises GraphError if the schema is not one of pyarrow.
    """
    if schema is not None:
        import pyarrow as pa

        if not isinstance(schema, pa.Schema):
            raise GraphError(f"to_arrow()'s schema is one of pyarrow, not {safe_repr(schema)}")

    def to_batch(rows: list[Any]) -> tuple[Any, dict[int, Exception]]:
        try:
            return batch_of_all(rows, schema), {}
        except Exception:
            fitting = FittingRows(rows, schema)
        try:
            return fitting.batch(), fitting.errors
        except Exception as error:  # of all together, as those without any column
            return None, {place: fitting.errors.get(place, error) for place in range(len(rows))}

    return to_batch
