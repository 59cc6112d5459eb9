"""Conversion of rows to Arrow batches, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.rows.batches import frame_rows, is_table, iterator_over, refuse_duplicate_columns
from callboard.streams.checks import MOST
from callboard.streams.errors import GraphError
from callboard.streams.programs.columns.named_columns import named_columns


def batch_of_all(rows: list[Any], schema: Any) -> Any:
    """Make a batch of all rows. Without a schema it has the columns that any of them has."""
    import pyarrow as pa

    names, columns = named_columns(rows, None if schema is None else schema.names)
    if not names:
        raise ValueError("a row without columns has no place in an Arrow batch")
    if schema is None:
        return pa.RecordBatch.from_arrays(columns, names)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class FittingRows:
    """Sorts rows: into `rows` that fit the schema, or each other, and `errors` by place.

    It looks at all rows at once, then at the halves of those that do not fit together. So a few bad
    rows cost a few looks. Without a schema a row has to fit the rows before it. The type of a
    column is then that of `some` of its values, so that a look need not begin with all of them.
    """

    def __init__(self, rows: list[Any], schema: Any) -> None:
        self.rows: list[Any] = []
        self.errors: dict[int, Exception] = {}
        self._schema = schema
        self._columns: dict[str, tuple[Any, list[Any]]] = {}  # its type, and some values
        self._refused: dict[tuple[str, Any], Exception] = {}  # types that no column can have
        self._take(rows, 0)

    def batch(self) -> Any:
        """Make a batch of the rows; None without rows. Raises Arrow's exceptions."""
        if not self.rows:
            return None
        schema = self._schema
        if schema is None:
            import pyarrow as pa

            schema = pa.schema([(name, kind) for name, (kind, _) in self._columns.items()])
        return batch_of_all(self.rows, schema)

    def _take(self, rows: list[Any], place: int) -> None:
        try:
            if self._schema is None:
                self._columns |= self._changed_by(rows)
            else:
                batch_of_all(rows, self._schema)
            self.rows += rows
            return
        except Exception as error:
            if len(rows) == 1:
                self.errors[place] = error
                return
        half = len(rows) // 2
        self._take(rows[:half], place)
        self._take(rows[half:], place + half)

    def _changed_by(self, rows: list[Any]) -> dict[str, tuple[Any, list[Any]]]:
        """Return the columns whose type such rows change. Raises an error if they do not fit."""
        import pyarrow as pa

        changed = {}
        for name, values in zip(*named_columns(rows), strict=True):
            kind, some = self._columns.get(name, (None, []))
            values = some + values
            joint = pa.array(values).type
            if joint != kind:
                if kind is not None:
                    self._change(name, joint)
                changed[name] = joint, _some(values, joint)
        return changed

    def _change(self, name: str, kind: Any) -> None:
        """Look whether a column's earlier values fit a type, once for each."""
        import pyarrow as pa

        if (name, kind) in self._refused:
            raise self._refused[name, kind].with_traceback(None)
        try:
            pa.array(named_columns(self.rows, [name])[1][0], kind)
        except Exception as error:
            self._refused[name, kind] = error
            raise


def _some(values: list[Any], kind: Any) -> list[Any]:
    """Return some of these values of a type that have it together, few if that is possible."""
    import pyarrow as pa

    half = len(values) // 2
    if half == 0:
        return values
    parts = values[:half], values[half:]
    try:
        kinds = [pa.array(part).type for part in parts]
    except Exception:  # they have a type among the others only, as whole numbers among decimals
        return values
    for part, own in zip(parts, kinds, strict=True):
        if own == kind:
            return _some(part, kind)
    return [value for part, own in zip(parts, kinds, strict=True) for value in _some(part, own)]


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
        raise TypeError(f"unbatch() expects batches, arrays or lists, got {safe_repr(batch)}")
    return [*iterator_over("unbatch()", batch)]


def batches(table: Any, n: int = 8_192) -> Iterator[Any]:
    """Yield the rows of a table as Arrow batches of at most `n` rows.

    `table` is a pandas or Polars frame, a DuckDB relation, an Arrow table, batch or reader, or a
    NumPy array with named fields. A pandas index is left out. Raises TypeError for anything else,
    and ValueError if two columns have the same name. Requires pyarrow.
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
        raise TypeError(f"batches() expects a table or a frame, got {safe_repr(table)}")
    return (batch for batch in table.to_batches())


def batch_of(schema: Any = None) -> Callable[[list[Any]], tuple[Any, dict[int, Exception]]]:
    """Make a function from rows to an Arrow batch of those that fit, or None, and the errors of the
    others by their places. It needs pyarrow. Raises GraphError if the schema is not one of pyarrow.
    """
    if schema is not None:
        import pyarrow as pa

        if not isinstance(schema, pa.Schema):
            raise GraphError(f"to_arrow() expects a schema of pyarrow, got {safe_repr(schema)}")

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
