"""Between rows and Arrow batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from callboard.core import checks
from callboard.core.batches import is_table, iterator_over, refuse_twins
from callboard.core.text import safe_repr
from callboard.streams.checks import MOST
from callboard.streams.errors import GraphError


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
            return _batch(rows, schema), {}
        except Exception:
            errors = _errors(rows, schema)
        good = [row for place, row in enumerate(rows) if place not in errors]
        try:
            return _batch(good, schema) if good else None, errors
        except Exception as error:  # which one it is cannot be found
            return None, {place: errors.get(place, error) for place in range(len(rows))}

    return to_batch


def _batch(rows: list[Any], schema: Any) -> Any:
    """Make a batch of all rows. Without a schema it has the columns that any of them has."""
    import pyarrow as pa

    if schema is None:
        records = [row if type(row) is dict else _record(row) for row in rows]
        names = [*dict.fromkeys(chain.from_iterable(records))]
        columns = [pa.array([record.get(name) for record in records]) for name in names]
    else:
        names = schema.names
        values = zip(*[_values(row, names) for row in rows], strict=True)
        columns = [pa.array(each, field.type) for each, field in zip(values, schema, strict=True)]
    if not names:
        raise ValueError("a row without columns has no place in an Arrow batch")
    if schema is None:
        return pa.RecordBatch.from_arrays(columns, names)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _errors(rows: list[Any], schema: Any) -> dict[int, Exception]:
    """Find the rows that have no place in a batch with the schema, or with the rows before them."""
    errors: dict[int, Exception] = {}
    known: dict[str, dict[Any, Any]] = {}  # of each column: a value of each type that has come
    for place, row in enumerate(rows):
        try:
            if schema is None:
                _learn(_record(row), known)
            else:
                _batch([row], schema)
        except Exception as error:
            errors[place] = error
    return errors


def _learn(record: Mapping[Any, Any], known: dict[str, dict[Any, Any]]) -> None:
    import pyarrow as pa

    found = {}
    for name, value in record.items():
        field = pa.field(name, pa.array([value]).type)
        others = known.get(name, {})
        if field.type not in others:
            pa.array([*others.values(), value])
        found[name] = field.type
    for name, kind in found.items():
        known.setdefault(name, {}).setdefault(kind, record[name])


def _record(row: Any) -> Mapping[Any, Any]:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    raise TypeError(f"to_arrow() wants rows that are dictionaries, not {safe_repr(row)}")


def _values(row: Any, names: list[str]) -> Iterable[Any]:
    """Return the values of a row in the order of a schema."""
    if not isinstance(row, tuple):
        record = _record(row)
        return [record.get(name) for name in names]
    if len(row) != len(names):
        raise ValueError(f"{safe_repr(row)} has {len(row)} values for {len(names)} columns")
    return row
