"""Between rows and Arrow batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from callboard.core.batches import is_table, iterator_over
from callboard.core.text import safe_repr


def rows_of(batch: Any) -> Iterable[Any]:
    """List the rows of an Arrow batch, a table or a frame as dictionaries, or an array's items.

    Raises TypeError for what has neither.
    """
    rows: list[Any]
    if hasattr(batch, "read_all"):  # the batches of a reader
        batch = batch.read_all()
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
