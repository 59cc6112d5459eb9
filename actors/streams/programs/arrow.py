"""Between rows and Arrow batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any


def rows_of(batch: Any) -> Iterable[Any]:
    """List the rows of an Arrow batch or table as dictionaries, or the items of an array."""
    for method in ("to_pylist", "tolist"):
        if hasattr(batch, method):
            rows: list[Any] = getattr(batch, method)()
            return rows
    return list(batch)


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
