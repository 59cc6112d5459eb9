"""Operators with several inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.core.text import safe_repr
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Errors, Operator, label_of
from callboard.streams.programs.merge import ByTime, Merge, Zip
from callboard.streams.programs.program import Program

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)
U = TypeVar("U")


class Joins(Chainable[T]):
    """What brings streams together.

    Event time has then come to the earliest time that all of the streams have come to.
    """

    __slots__ = ()

    def union(
        self,
        *others: Stream[U],
        by: Callable[[T | U], Any] | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T | U]:
        """Give the rows of this stream and of others, as they come.

        Of branches of one stream, what all of them made of a row of it comes before what they made
        of the next; and for one row, branch by branch, in the order of the arguments.

        With `by`, the rows' time, streams that are each in order of time are merged into one that
        is as well; of one time, rows of the earlier stream among the arguments come first. So a row
        waits until each stream after its own has come to its time, and each before it beyond, by a
        row or by a watermark, or until the end. One that is behind its own stream does not wait for
        its place, which is past. What `by` returns may be anything that has an order; NaN is an
        error of the row.
        """
        if by is None:
            return self._join("union", Merge, others, name)
        check_function("by", by)
        detail = f"by {label_of(by, 'time')}"
        return self._join("union", partial(ByTime, time_of=by), others, name, errors, detail)

    def zip(self, *others: Stream[Any], name: str | None = None) -> Stream[tuple[Any, ...]]:
        """Give tuples of the streams' first rows, then of their second rows, and so on.

        A row waits for its partners. If they have not come at the end of the stream it is dropped,
        and counted by the run as unpaired; in an actor system it becomes a dead letter.
        """
        return self._join("zip", Zip, others, name)

    def _join(
        self,
        kind: str,
        program: Callable[..., Program],
        others: tuple[Any, ...],
        name: str | None,
        errors: Errors = "fail",
        detail: str = "",
    ) -> Stream[Any]:
        if not others:
            raise GraphError(f"{kind}() takes one stream or more")
        for other in others:
            if not isinstance(other, Chainable):
                raise GraphError(f"{kind}() takes streams, not {safe_repr(other)}")
        operator = Operator(kind=kind, program=program, joins=True, detail=detail)
        return self._then(operator, name, errors, others=others)
