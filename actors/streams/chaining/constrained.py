"""Which threads run the operators of a part of a graph, and how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from callboard.scheduling.flow.threading_models import Model
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.checks import check_count
from callboard.streams.planning.constraints import Constraint, check_model

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)


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

    def max_workers(self, most: int) -> Stream[T]:
        """Give the same stream; at most so many workers at a time run the operator that follows.

        Use it for an operator that not all workers may run at once, because it uses a service or a
        device with a limit. Each operator that is made from the result has a limit of its own; the
        operators after it have none. Only in the model `dynamic` several workers may run one
        operator.
        """
        most = check_count("max_workers", most)
        return cast("Stream[T]", cast("Any", type(self))(self._outlet, self._constraint, most))

    def _constrained(self, constraint: Constraint) -> Stream[T]:
        made = cast("Any", type(self))(self._outlet, constraint, self._max_workers)
        return cast("Stream[T]", made)
