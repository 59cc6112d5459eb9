"""Streams, whose methods build a graph."""

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
    """The methods that constrain which threads run operators, and how many.

    They do not change the output of a graph.
    """

    __slots__ = ()

    def run_on(self, model: Model) -> Stream[T]:
        """Return the same stream; operators made from it run in the given threading model.

        This applies to all operators that are chained to the result, one after the other, sinks
        included, up to the next `run_on()`. An operator with several inputs belongs to the stream
        whose method makes it. Without `run_on()`, an operator runs in the model of the run: see
        `Graph`.

        A `manual` part is run by the caller's thread if it reads only entries and outputs of that
        thread. Otherwise another thread runs it: the one that runs the first of its inputs with a
        thread in this model, or else a new thread for this call.
        """
        model = check_model("a threading model", model)
        return self._constrained(Constraint(model, here=self._constraint.here))

    def here(self) -> Stream[T]:
        """Return the same stream; operators made from it run in no worker process.

        This applies to all operators that are chained to the result, up to the next
        `in_processes()`. Use it for functions that need objects of the program. Without `processes`
        of the system it has no effect.
        """
        return self._constrained(Constraint(self._constraint.model, here=True))

    def in_processes(self) -> Stream[T]:
        """Return the same stream; operators made from it may run in worker processes again.

        This ends `here()`. Without that it has no effect.
        """
        return self._constrained(Constraint(self._constraint.model))

    def new_thread(self) -> Stream[T]:
        """Return the same stream; in the model `manual`, another thread takes over from here.

        Each call means a new thread. It runs the operators made from the result, and all after them
        up to the next `new_thread()` or `run_on()`. Other models ignore it.
        """
        here = self._constraint.here
        return self._constrained(Constraint(self._constraint.model, is_port=True, here=here))

    def max_workers(self, limit: int) -> Stream[T]:
        """Return the same stream; at most `limit` workers at a time run the operator that follows.

        Use it for an operator that needs a limited service or device. The limit applies to each
        operator made from the result, but not to those after it. Only in the model `dynamic` may
        several workers run one operator.
        """
        limit = check_count("max_workers", limit)
        return cast("Stream[T]", cast("Any", type(self))(self._outlet, self._constraint, limit))

    def _constrained(self, constraint: Constraint) -> Stream[T]:
        made = cast("Any", type(self))(self._outlet, constraint, self._max_workers)
        return cast("Stream[T]", made)


class Stream(RowByRow[T], WithState[T], BatchJoins[T], Constrained[T], Ends[T]):
    """A sequence of rows, as a place in a graph; `entry()` makes the first.

    Each method adds an operator and returns a new stream. A stream never changes, and may be used
    any number of times: each use gets all of its rows. A wrong argument raises GraphError
    immediately. Most operators take:

    - `name`: the operator's name in errors, drawings and statistics; by default its function's
      name.
    - `errors`: what happens to a row at which the function raises. With "fail" the run fails with
      StreamError; with "skip" the row is dropped, and the run counts it; with "side" a FailedRow
      goes to the stream `.failures`. In no case does the row have any output.
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
    """Begin a stream with the rows that a run gets under this name.

    `of` is the type of the rows, only for type checkers.
    """
    check_name("an entry's name", name)
    return Stream(Outlet(Operator(kind="entry", program=None, name=name)))
