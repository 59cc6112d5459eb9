"""Between rows and Arrow batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from callboard.core import checks
from callboard.core.batches import is_table, iterator_over, refuse_twins
from callboard.core.text import safe_repr
from callboard.streams.checks import MOST


def rows_of(batch: Any) -> Iterable[Any]:
    """List the rows of an Arrow batch, a table or a frame as dictionaries, or an array's items.

    Raises TypeError for what has neither, and ValueError if two columns have one name.
    """
    rows: list[Any]
    if hasattr(batch, "read_all"):  # the batches of a reader
        batch = batch.read_all()
    if is_table(batch) or hasattr(batch, "to_pylist"):
        refuse_twins(batch)
    for method in ("to_pylist", "to_dicts", "tolist"):
        if hasattr(batch, method):
            rows = getattr(batch, method)()
            return rows
    if is_table(batch) and hasattr(batch, "itertuples"):  # of pandas
        rows = batch.to_dict("records")
        return rows
    if isinstance(batch, str | bytes | bytearray | Mapping):
        raise TypeError(f"rows() wants batches, arrays or lists, not {safe_repr(batch)}")
    return [*iterator_over("rows()", batch)]


def batches(table: Any, n: int = 8_192) -> Iterator[Any]:
    """Give the rows of a table as Arrow batches, of `n` rows at most.

    `table` is a frame of pandas or Polars, an Arrow table, batch or reader, or a NumPy array with
    named fields. An index of pandas is left out. Raises TypeError for anything else, and ValueError
    if two columns have one name. Needs pyarrow.
    """
    n = checks.whole("n", n, most=MOST)
    refuse_twins(table)
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
    elif is_table(table) and hasattr(table, "iter_rows"):
        table = table.to_arrow()
    elif is_table(table) and hasattr(table, "itertuples"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if not isinstance(table, pa.Table):
        raise TypeError(f"batches() wants a table or a frame, not {safe_repr(table)}")
    return (batch for batch in table.to_batches())


def batch_of(schema: Any = None) -> Callable[[list[Any]], Any]:
    """Make a function from rows to an Arrow batch. Needs pyarrow, when it is called."""

    def to_batch(rows: list[Any]) -> Any:
        import pyarrow as pa

        if schema is not None and isinstance(rows[0], tuple):
            values = zip(*rows, strict=True)
            columns = [pa.array(next(values), field.type) for field in schema]
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        if dataclasses.is_dataclass(rows[0]):
            names = [field.name for field in dataclasses.fields(rows[0])]
            rows = [{name: getattr(row, name) for name in names} for row in rows]
        return pa.RecordBatch.from_pylist(rows, schema=schema)

    return to_batch
