"""Streams: graphs are built by chaining them."""

from __future__ import annotations

from inspect import isfunction
from typing import Any, TypeVar, overload

from callboard.core.handles import public_names
from callboard.streams.chaining.batch_joins import BatchJoins
from callboard.streams.chaining.constrained import Constrained
from callboard.streams.chaining.ends import Ends
from callboard.streams.chaining.rowwise import RowByRow
from callboard.streams.chaining.with_state import WithState
from callboard.streams.checks import check_name
from callboard.streams.planning.operator import Operator, Outlet

T = TypeVar("T", covariant=True)
Row = TypeVar("Row")


class Stream(RowByRow[T], WithState[T], BatchJoins[T], Constrained[T], Ends[T]):
    """A sequence of rows, as a place in a graph; `entry()` makes the first.

    Each method adds an operator and returns a new stream. A stream itself never changes, and may be
    used any number of times: each use gets all of its rows. Most operators take

    `name`      what errors, pictures and statistics call it; without, it is its function's name
    `errors`    what becomes of a row at which its function raises: with "fail" the run fails, by
                StreamError; with "skip" the row is dropped, and counted by the run; with "side" a
                FailedRow goes to the stream `.failures`. In no case has the row any output

    An argument that is wrong raises GraphError at once.
    """

    __slots__ = ()
    __dir__ = public_names


# Python's errors of a wrong call name a method so, and not with the class that it is written in.
for _class in Stream.__mro__:
    for _name, _method in vars(_class).items():
        if isfunction(_method) and not _name.startswith("_"):
            _method.__qualname__ = f"Stream.{_name}"


@overload
def entry(name: str, of: None = None) -> Stream[Any]: ...
@overload
def entry(name: str, of: type[Row]) -> Stream[Row]: ...
def entry(name: str, of: Any = None) -> Stream[Any]:
    """Begin a stream with the rows that a run is sent by this name.

    `of` is the type of the rows, for type checkers alone.
    """
    check_name("an entry's name", name)
    return Stream(Outlet(Operator(kind="entry", program=None, name=name)))
