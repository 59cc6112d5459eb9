"""Streams: graphs are built by chaining them."""

from __future__ import annotations

from inspect import isfunction
from typing import Any, TypeVar, cast, overload

from callboard.core.handles import public_names
from callboard.scheduling.flow.threading_models import Model
from callboard.streams.chaining.batch_joins import BatchJoins
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.chaining.ends import Ends
from callboard.streams.chaining.rowwise import RowByRow
from callboard.streams.chaining.with_state import WithState
from callboard.streams.checks import check_count, check_name
from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.plan import Constraint, check_model

T = TypeVar("T", covariant=True)
Row = TypeVar("Row")


class Constrained(Chainable[T]):
    """The methods that say which threads run operators, and how many. They change no output of a
    graph.
    """

    __slots__ = ()

    def run_on(self, model: Model) -> Stream[T]:
        """Give the same stream; the operators that are made from it run by a threading model.

        These are all operators that are chained to the result, one after the other, sinks included,
        up to the next call of `run_on()`. An operator with several inputs belongs to the stream
        whose method makes it. Operators without such a mark run by the model of the run: see
        `ActorSystem.run`, which says what the models are.

        A part that is `manual` is run by the caller's thread if it reads only entries and outputs
        of that thread. Otherwise another thread runs it: that of the first input stream which
        another thread of the model gives, and without one a new thread for this mark.
        """
        model = check_model("a threading model", model)
        return self._constrained(Constraint(model))

    def new_thread(self) -> Stream[T]:
        """Give the same stream; in the model `manual`, another thread takes over from here.

        That thread is a new one for this call. It runs the operators that are made from the result,
        and all after them up to the next threaded port or `run_on()`. It has no effect in the
        other models.
        """
        return self._constrained(Constraint(self._constraint.model, is_port=True))

    def max_workers(self, limit: int) -> Stream[T]:
        """Give the same stream; at most so many workers at a time run the operator that follows.

        Use it for an operator that not all workers may run at once, because it uses a service or a
        device with a limit. Each operator that is made from the result has a limit of its own; the
        operators after it have none. Only in the model `dynamic` several workers may run one
        operator.
        """
        limit = check_count("max_workers", limit)
        return cast("Stream[T]", cast("Any", type(self))(self._outlet, self._constraint, limit))

    def _constrained(self, constraint: Constraint) -> Stream[T]:
        made = cast("Any", type(self))(self._outlet, constraint, self._max_workers)
        return cast("Stream[T]", made)


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
