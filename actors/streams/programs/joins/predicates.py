"""Predicates of a join: which pairs of rows are partners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.programs.joins.comparisons import Comparison, Named, Nearness
from callboard.streams.programs.program import check_answer

Column = str | int | Callable[[Any], Any]


class Predicate:
    """A join's predicate: terms that all have to hold. `Band("x", 10) & Equal("symbol")`."""

    __slots__ = ("terms",)

    def __init__(self, *terms: Term) -> None:
        self.terms: tuple[Term, ...] = terms

    def __and__(self, other: Predicate) -> Predicate:
        if not isinstance(other, Predicate):
            return NotImplemented
        return Predicate(*self.terms, *other.terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.terms))


class Term(Predicate):
    """A predicate of one value of each row.

    `comparison` compares two values; None: they must be equal, so that partners are found by a
    table. A row in which a value is missing that is compared has no partner.
    """

    __slots__ = ("left", "right")

    comparison: Comparison | None = None

    def __init__(self, column: Column, right: Column | None) -> None:
        super().__init__(self)
        self.left = column
        self.right = column if right is None else right
        for each in (self.left, self.right):
            check_column(type(self).__name__, each)

    @property
    def readers(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """The functions that give the values of a row of the left and of the right stream."""
        return reader_of(self.left), reader_of(self.right)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.named()})"

    def named(self) -> str:
        """Say which values it is about."""
        left, right = name_of(self.left), name_of(self.right)
        return left if left == right else f"{left}, {right}"


class Equal(Term):
    """Rows are partners if a value of theirs is equal.

    `column` is how the value is found in a row: a name, of an attribute or a key; the place in a
    tuple; or a function of the row. `right` is that of the right stream, where it is another.
    Values are equal as in Python, so None is equal to None; NaN is equal to nothing, and an error
    of its row. Datetimes with a zone are equal if they are one moment.
    """

    __slots__ = ()

    def __init__(self, column: Column, right: Column | None = None) -> None:
        super().__init__(column, right)


class Band(Term):
    """Rows are partners if a value of theirs differs by `distance` at most.

    `column` and `right` as for `Equal`. Values are numbers, or have a difference that can be
    compared with `distance`, such as times and a `timedelta`. Any other value is an error of its
    row, and so is one that cannot be subtracted from the first one that came. None, NaN, and NaT
    and NA of NumPy and pandas are near to nothing: such a row has no partner.
    """

    __slots__ = ("comparison", "distance")

    def __init__(self, column: Column, distance: Any, right: Column | None = None) -> None:
        super().__init__(column, right)
        check_distance("a band's distance", distance)
        self.distance = distance
        self.comparison = Nearness(distance)

    def __repr__(self) -> str:
        return f"Band({self.named()}, {safe_repr(self.distance)})"


def check_distance(what: str, value: Any) -> None:
    """Check that something is a length, or none. Raises GraphError."""
    try:
        none = value - value
        valid = not isinstance(value, bool) and none == none and bool(value >= none)
    except (TypeError, ArithmeticError):
        valid = False
    if not valid:
        raise GraphError(f"{what} is a length, 0 or more, not {safe_repr(value)}")


def check_column(what: str, column: Any) -> None:
    """Check that something says how a value is found in a row. Raises GraphError."""
    if isinstance(column, bool) or not (isinstance(column, str | int) or callable(column)):
        raise GraphError(
            f"{what} takes a name, a place or a function of a row, not {safe_repr(column)}"
        )
    if callable(column):
        check_function(what, column)


def reader_of(column: Column) -> Callable[[Any], Any]:
    """Return the function that finds a value in a row."""
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
    """Return the places at which a mask of so many rows is true; null is not. Raises TypeError."""
    import numpy as np
    import pyarrow as pa

    check_answer(answer)
    mask = answer
    if isinstance(answer, pa.Array | pa.ChunkedArray) and answer.type == pa.bool_():
        mask = np.asarray(answer.fill_null(False))
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (rows,):
        return np.flatnonzero(mask)
    raise TypeError(
        "where= answers a boolean array of NumPy or Arrow, with a value for each of "
        f"{rows:,} rows, not {safe_repr(answer)}"
    )
