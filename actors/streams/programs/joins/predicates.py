"""Predicates of a join: they say which pairs of rows are partners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.programs.joins.comparisons import Comparison, Named, Nearness
from callboard.streams.programs.program import check_answer

Column = str | int | Callable[[Any], Any]


class Predicate:
    """The predicate of a join: terms that must all hold, as `Band("x", 10) & Equal("symbol")`."""

    __slots__ = ("_terms",)

    __dir__ = public_names

    def __init__(self, *terms: Term) -> None:
        self._terms: tuple[Term, ...] = terms

    def __and__(self, other: Predicate) -> Predicate:
        if not isinstance(other, Predicate):
            return NotImplemented
        return Predicate(*self._terms, *other._terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self._terms)

    def __repr__(self) -> str:
        return " & ".join(map(repr, self._terms))


class Term(Predicate):
    """A predicate about one value of each row.

    `_comparison` compares two values. If it is None, they must be equal, and a table of values
    finds partners. A row in which a compared value is missing has no partner.
    """

    __slots__ = ("_left", "_right")

    _comparison: Comparison | None = None

    def __init__(self, column: Column, right: Column | None) -> None:
        super().__init__(self)
        self._left = column
        self._right = column if right is None else right
        for each in (self._left, self._right):
            check_column(type(self).__name__, each)

    @property
    def _readers(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """The functions that read the values of a row of the left and of the right stream."""
        return reader_of(self._left), reader_of(self._right)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._named()})"

    def _named(self) -> str:
        """Name the values that are compared."""
        left, right = name_of(self._left), name_of(self._right)
        return left if left == right else f"{left}, {right}"


class Equal(Term):
    """Two rows are partners if one value is equal in both.

    Values are equal as in Python, so None is equal to None. NaN is equal to nothing, and an error
    of its row. Datetimes with a zone are equal if they are the same moment.

    Args:
        column: Where the value is in a row: the name of an attribute or a key, an index in a tuple,
            or a function of the row.
        right: The same for rows of the right stream, if it is elsewhere there.
    """

    __slots__ = ()

    def __init__(self, column: Column, right: Column | None = None) -> None:
        super().__init__(column, right)


class Band(Term):
    """Two rows are partners if one value differs by at most `distance` between them.

    None, NaN, and the NaT and NA of NumPy and pandas match nothing: such a row has no partner. Any
    other value without a difference is an error of its row, and so is one that cannot be subtracted
    from the first value of the run.

    Args:
        column: Where the value is in a row, as for `Equal`.
        distance: A number, or anything that can be compared with the difference of two values, such
            as a `timedelta` for times.
        right: The same for rows of the right stream, if it is different there.
    """

    __slots__ = ("_comparison", "_distance")

    def __init__(self, column: Column, distance: Any, right: Column | None = None) -> None:
        super().__init__(column, right)
        check_distance("a band's distance", distance)
        self._distance = distance
        self._comparison = Nearness(distance)

    def __repr__(self) -> str:
        return f"Band({self._named()}, {safe_repr(self._distance)})"


def check_distance(what: str, value: Any) -> None:
    """Check that a value is a length. Raises GraphError."""
    try:
        zero = value - value
        valid = not isinstance(value, bool) and zero == zero and bool(value >= zero)
    except (TypeError, ArithmeticError):
        valid = False
    if not valid:
        raise GraphError(f"{what}: expected a length of 0 or more, got {safe_repr(value)}")


def check_column(what: str, column: Any) -> None:
    """Check that `column` tells where a value is in a row. Raises GraphError."""
    if isinstance(column, bool) or not (isinstance(column, str | int) or callable(column)):
        raise GraphError(
            f"{what}: expected a name, a place or a function of a row, got {safe_repr(column)}"
        )
    if callable(column):
        check_function(what, column)


def reader_of(column: Column) -> Callable[[Any], Any]:
    """Return the function that reads a value from a row."""
    if isinstance(column, str):
        return Named(column)
    if isinstance(column, int):
        return itemgetter(column)
    return column


def name_of(column: Column) -> str:
    """Return the name of a value."""
    if isinstance(column, str | int):
        return repr(column)
    return getattr(column, "__name__", safe_repr(column))


def places_in(answer: Any, rows: int) -> Any:
    """Return the places at which a mask of that many rows is true; null counts as false.

    Raises TypeError.
    """
    import numpy as np
    import pyarrow as pa

    check_answer(answer)
    mask = answer
    if isinstance(answer, pa.Array | pa.ChunkedArray) and answer.type == pa.bool_():
        mask = np.asarray(answer.fill_null(False))
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (rows,):
        return np.flatnonzero(mask)
    raise TypeError(
        f"where=: expected a boolean array of NumPy or Arrow with {rows:,} values as the answer, "
        f"got {safe_repr(answer)}"
    )
