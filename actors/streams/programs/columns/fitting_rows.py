"""Rows that fit into one Arrow batch, and the errors of those that do not."""

from __future__ import annotations

from typing import Any

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
        """Make a batch of the rows; None if there are none. Raises what Arrow raises."""
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
