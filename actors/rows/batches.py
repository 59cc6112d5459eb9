"""Batches of rows that are sent into a graph of operators or of actors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from callboard.core.text import safe_repr

_OF_TABLE = 512  # rows that are made at a time, if batches have no size of their own

# The call that gives the rows of a table, by a method that only this library's tables have.
_ROWS_BY = {
    "to_pylist": ".to_pylist() or .to_batches()",  # of pyarrow
    "fetchall": ".fetchall()",  # of DuckDB
    "iter_rows": ".iter_rows(named=True) or .to_arrow().to_batches()",  # of Polars
    "collect_schema": ".collect().iter_rows(named=True)",
    "itertuples": ".to_dict('records')",  # of pandas
    "toLocalIterator": ".toLocalIterator()",  # of Spark
}


def iterator_over(caller: str, rows: Any, what: str = "rows") -> Iterator[Any]:
    """Return an iterator over rows.

    Raises TypeError, which names the `caller`, if `rows` is not iterable, or is a table.
    """
    kind = type(rows)
    if kind is not list and is_table(rows):
        methods = [said for method, said in _ROWS_BY.items() if hasattr(kind, method)]
        raise TypeError(
            f"{caller} expects an iterable of {what}, got one {kind.__name__}: give it the table's "
            f"rows, or its batches{', as by ' + methods[0] if methods else ''}"
        )
    try:
        return iter(rows)
    except TypeError:
        raise TypeError(f"{caller} expects an iterable of {what}, got {safe_repr(rows)}") from None


def rows_in(table: Any, size: int) -> Iterator[dict[str, Any]] | None:
    """Return the rows of an Arrow table, of a frame of Polars or pandas, or of a relation of
    DuckDB, as dictionaries.

    They are made `size` at a time. Returns None if it is not such a table. Raises ValueError if
    two columns have one name.
    """
    kind = type(table)
    if not is_table(table):
        return None
    refuse_duplicate_columns(table)
    if hasattr(kind, "to_batches") and hasattr(kind, "to_pylist"):
        batches = table.to_batches(max_chunksize=size)
        return (row for batch in batches for row in batch.to_pylist())
    if hasattr(kind, "iter_rows") and hasattr(kind, "fetchall"):  # of DuckDB
        names = table.columns
        return (dict(zip(names, row, strict=True)) for row in table.iter_rows())
    if hasattr(kind, "iter_rows"):
        rows: Iterator[dict[str, Any]] = table.iter_rows(named=True)
        return rows
    if hasattr(kind, "itertuples") and hasattr(kind, "iloc"):
        texts = _columns_of_texts(table)  # of all rows: a part may have missing ones alone
        parts = (table.iloc[at : at + size] for at in range(0, len(table), size))
        return (row for part in parts for row in frame_rows(part, texts))
    return None


def frame_rows(frame: Any, texts: list[Any] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a frame of pandas.

    A text that is missing is None: pandas has NaN or NA there, by the type of the column. `texts`
    are the columns that have texts, if the caller knows them.
    """
    texts = _columns_of_texts(frame) if texts is None else texts
    if texts:
        objects = frame[texts].astype(object)
        frame = frame.copy(deep=False)
        frame[texts] = objects.where(objects.notna(), None)
    rows: list[dict[str, Any]] = frame.to_dict("records")
    return rows


def _columns_of_texts(frame: Any) -> list[Any]:
    return [name for name in frame.columns if _has_texts(frame[name])]


def _has_texts(column: Any) -> bool:
    """Return whether a column of pandas has texts: by its type, or that of its categories, or one
    of objects by what is in it.
    """
    categories = getattr(column.dtype, "categories", None)
    if categories is not None:
        return _has_texts(categories)
    kind = str(column.dtype)
    return kind in ("str", "string") or (
        kind == "object" and any(isinstance(value, str) for value in column)
    )


def refuse_duplicate_columns(table: Any) -> None:
    """Raise ValueError if two columns of a table or a batch have one name: rows would lose one."""
    if hasattr(table, "collect_schema"):
        return  # Polars refuses them
    names = getattr(getattr(table, "schema", None), "names", None)  # of Arrow
    if not isinstance(names, list):
        names = getattr(table, "columns", ())
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(
                f"{times} columns of the {type(table).__name__} have the name {safe_repr(name)}, "
                "and a row has one value for a name: rename the others"
            )


def is_table(value: Any) -> bool:
    """Return whether `value` is a table or a frame: iterating over one gives columns, not rows."""
    kind = type(value)
    return hasattr(kind, "__dataframe__") or (hasattr(kind, "columns") and hasattr(kind, "dtypes"))


class Batches:
    """An iterator over lists of `size` rows. The last list has the rows that are left.

    `size` may be a function that says it for each list.

    If `rows` raises an Exception, the rows before it come first, as a batch of their own. `taken`
    is the latest batch, whole or not, and `raised` the exception that is to come after it, or None.

    A table has its rows, as dictionaries: see rows_in(), which raises ValueError.

    Rows with a method `receive_many_nowait(most)`, such as a channel's receiver, come in batches of
    those that are there: no row waits until its batch is full.

    From when `is_given_up()` on no more rows are taken.

    Raises TypeError, which names the `caller`, if `rows` is not an iterable of rows.
    """

    def __init__(
        self,
        caller: str,
        rows: Iterable[Any],
        size: int | Callable[[], int],
        is_given_up: Callable[[], bool] | None = None,
    ) -> None:
        if hasattr(rows, "__arrow_c_array__"):  # a row of its own, though one can iterate over it
            rows = [rows]
        if isinstance(rows, str | bytes | bytearray | Mapping):
            kind = type(rows).__name__
            raise TypeError(
                f"{caller} expects an iterable of rows, got one {kind}: {safe_repr(rows)}"
            )
        at_once = size if isinstance(size, int) else _OF_TABLE
        table = None if type(rows) is list else rows_in(rows, at_once)
        self._rows = iterator_over(caller, rows) if table is None else table
        self._take_waiting = getattr(rows, "receive_many_nowait", None)
        self._size = size
        self._is_given_up = is_given_up
        self._list = rows if type(rows) is list else None  # to be sliced, which is faster
        self._at = 0
        self.taken: list[Any] = []
        self.raised: Exception | None = None

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __next__(self) -> list[Any]:
        size = self._size if isinstance(self._size, int) else self._size()
        if self._list is not None:
            self.taken = self._list[self._at : self._at + size]
            self._at += size
        else:
            self._take(size)
        if not self.taken:
            raise StopIteration
        return self.taken

    def _take(self, size: int) -> None:
        self.taken = []
        if self.raised is not None:
            raise self.raised
        try:
            wanted = size if self._take_waiting is None else 1
            # Either keeps the rows before an exception.
            if self._is_given_up is None:
                self.taken.extend(islice(self._rows, wanted))
            else:
                self._take_singly(wanted, self._is_given_up)
            if self._take_waiting is not None and self.taken and size > 1:
                self.taken.extend(self._take_waiting(size - 1))
        except Exception as error:
            if not self.taken:
                raise
            self.raised = error

    def _take_singly(self, wanted: int, is_given_up: Callable[[], bool]) -> None:
        """Take rows that may be long in coming."""
        for row in islice(self._rows, wanted):
            self.taken.append(row)
            if is_given_up():
                break
