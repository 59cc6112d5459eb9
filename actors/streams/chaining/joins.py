"""Operators with several inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from callboard.core.text import safe_repr
from callboard.streams.chaining.place import Place
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Errors, Operator, label_of
from callboard.streams.programs.merge import ByTime, Union, Zip

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)
U = TypeVar("U")


class Joins(Place[T]):
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
        its place, which is past. What `by` answers may be anything that has an order; NaN is an
        error of the row.
        """
        self._check("union", others)
        inputs = (self, *others)
        if by is None:
            return self._join("union", Union, inputs, name=name)
        check_function("by", by)
        return self._join(
            "union", ByTime, inputs, args=(by,), name=name, errors=errors,
            detail=f"by {label_of(by, 'time')}",
        )

    def zip(self, *others: Stream[Any], name: str | None = None) -> Stream[tuple[Any, ...]]:
        """Give tuples of the streams' first rows, then of their second rows, and so on.

        A row waits for its partners. If they have not come at the end of the stream it is dropped,
        and counted by the run as unpaired; in an actor system it becomes a dead letter.
        """
        self._check("zip", others)
        return self._join("zip", Zip, (self, *others), name=name)

    def _check(self, kind: str, others: tuple[Any, ...]) -> None:
        if not others:
            raise GraphError(f"{kind}() takes one stream or more")
        for other in others:
            if not isinstance(other, Place):
                raise GraphError(f"{kind}() takes streams, not {safe_repr(other)}")

    def _join(self, kind: str, program: Any, inputs: tuple[Any, ...], **what: Any) -> Stream[Any]:
        operator = Operator(kind=kind, program=program, inputs=inputs, joins=True, **what)
        return cast("Stream[Any]", type(self)(operator))
