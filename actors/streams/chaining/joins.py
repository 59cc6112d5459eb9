"""Operators with several inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callboard.core.text import safe_repr
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.native import NativePredicate
from callboard.streams.operators import joining
from callboard.streams.operators.joining import By, How, LateRow, Nearest, Rule
from callboard.streams.planning.operator import Errors, Operator
from callboard.streams.programs.joins.predicates import Predicate
from callboard.streams.programs.merging.merge import Merge, Zip

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)
U = TypeVar("U")
V = TypeVar("V")


class Joins(Chainable[T]):
    """The methods that bring streams together.

    Event time is then the earliest time that all of the streams have come to. Behind a join, it is
    the time of the oldest row that may still be part of an output.
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

        With branches of one stream, all outputs of a row come before those of the next. A row's
        outputs come branch by branch, in the order of the arguments.

        With `by`, it is `merge()`, except that no row is late: one that is behind its own stream
        does not wait for its place, which is past.
        """
        if by is None:
            return self._join(Operator(kind="union", program=Merge, joins=True), others, name)
        check_function("by", by)
        return self._join(joining.union(by, 1 + len(others)), others, name, errors)

    def merge(
        self,
        *others: Stream[U],
        by: By,
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T | U]:
        """Give the rows of this stream and of others in order of time.

        `by` is the time of a row: a function, or the name or place of the value in a row; or a
        tuple of these, one for each stream. With equal times, rows of the earlier stream among the
        arguments come first, and those of one stream as they came. So the output is the same,
        however the streams' rows arrive among each other (the ScaleGate of Gulisano et al. 2015,
        section IV-A).

        A row waits until each stream after its own has come to its time, and each before it beyond,
        by a row or by a watermark, or until the end. Times are any values that have an order;
        datetimes with a zone are compared as moments. None and NaN are errors of the row.

        Each stream is in order of time, or with `delay_threshold` nearly: a row may be so far
        behind the latest of its stream, and waits so much longer. A row that is further behind, or
        before its stream's watermark, is late. It is dropped, counted, and in an actor system a
        dead letter; with `late="side"` it goes to the side output "late".

        A stream from which nothing has come for `idle_timeout` seconds is idle: the others go on
        without it until something comes again. A row of it whose place is past by then is late. The
        clock is the system's, so what is late may differ from run to run; `run_sequentially()` has
        none, and nobody is idle there. Where the caller's thread runs the operator (`manual`), it
        looks when something is sent.
        """
        operator = joining.merge(by, 1 + len(others), delay_threshold, late, idle_timeout)
        return self._join(operator, others, name, errors)

    @overload
    def join(
        self,
        other: Stream[U],
        *,
        by: By,
        within: Any = None,
        rows: int | None = None,
        where: Predicate | NativePredicate | Callable[[T, U], object] | None = None,
        combine: None = None,
        how: How = "inner",
        rule: Rule = "strict",
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        lanes: int = 1,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]: ...
    @overload
    def join(
        self,
        other: Stream[U],
        *,
        by: By,
        within: Any = None,
        rows: int | None = None,
        where: Predicate | NativePredicate | Callable[[T, U], object] | None = None,
        combine: Callable[[Any, Any], V],
        how: How = "inner",
        rule: Rule = "strict",
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        lanes: int = 1,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[V]: ...
    def join(
        self,
        other: Stream[U],
        *,
        by: By,
        within: Any = None,
        rows: int | None = None,
        where: Predicate | NativePredicate | Callable[[T, U], object] | None = None,
        combine: Callable[[Any, Any], Any] | None = None,
        how: How = "inner",
        rule: Rule = "strict",
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        lanes: int = 1,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Give `combine(left, right)` for pairs of a row of this stream and one of another.

        Rows are taken in the order of `merge()`, whose `by`, `delay_threshold`, `late` and
        `idle_timeout` these are. Each is compared with those of the other stream that were taken
        before it and are at most `within` older; or, with `rows`, with the last so many of them.
        With a pair `within= (before, after)` a partner's time is from `before` before that of the
        row of this stream to `after` after it. So the outputs, and their order, are the same
        however rows arrive: for one row after the other, its partners from the oldest.

        `where`    what makes partners of two rows: `Equal`, `Band`, or several of these by `&`; or
                   a function of both, or a `NativePredicate`; without, all are
        `combine`  without, a pair is a tuple
        `how`      "inner": pairs. "left", "right" and "outer": also rows without a partner of the
                   left stream, of the other one, of both, with None for what they lack. "semi" and
                   "anti": no pairs, but rows of this stream that have a partner, once, or have none
        `rule`     "strict": partners are at most `within` apart. "three-step" (Kang et al. 2003, in
                   section II of Gulisano et al. 2015): a row is compared with those that were at
                   most `within` older than the latest of their own stream, however old they are

        A row without a partner is given when no later row can be its partner, in its place in the
        order. By "strict" that is before the first row that is too late for it, and of two such
        rows it is the one for which time was over first; with `rows` or
        "three-step", after the row of its stream that pushed it out. The others are given at the
        end.

        With several `lanes` the comparisons are shared by so many workers, each of which stores
        every n-th row and compares it with all others that come (ScaleJoin, section IV-B). The
        outputs are the same. It is for a `NativePredicate`, and on a Python without an interpreter
        lock for functions of pairs and wide bands, too; with one, lanes of these take turns.

        An exception of `by`, `where` or `combine` is an error of the row that was being compared,
        which then gives nothing and has no partner. Times need a difference that can be compared
        with `within`.
        """
        operator = joining.join(
            by,
            within,
            rows,
            where,
            combine=combine,
            how=how,
            rule=rule,
            delay_threshold=delay_threshold,
            late=late,
            idle_timeout=idle_timeout,
            lanes=lanes,
        )
        return self._join(operator, (other,), name, errors)

    @overload
    def join_asof(
        self,
        other: Stream[U],
        *,
        by: By,
        where: Predicate | None = None,
        nearest: Nearest = "before",
        tolerance: Any = None,
        combine: None = None,
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[T, U | None]]: ...
    @overload
    def join_asof(
        self,
        other: Stream[U],
        *,
        by: By,
        where: Predicate | None = None,
        nearest: Nearest = "before",
        tolerance: Any = None,
        combine: Callable[[T, U | None], V],
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[V]: ...
    def join_asof(
        self,
        other: Stream[U],
        *,
        by: By,
        where: Predicate | None = None,
        nearest: Nearest = "before",
        tolerance: Any = None,
        combine: Callable[[Any, Any], Any] | None = None,
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Give `combine(row, partner)` for each row of this stream, in order of time.

        The partner is the row of the other stream that is nearest in time, or None. Without
        `combine` the output is a tuple. Times are those of `merge()`, whose `by`,
        `delay_threshold`, `late` and `idle_timeout` these are.

        `nearest`    "before": the latest row that is not later, of equal times the last. "after":
                     the first row that is not earlier, of equal times the first. "either": the
                     nearer of the one before and the first one later; of two as near, the one
                     before
        `where`      what a row has in common with its partner: `Equal`, or several of these by `&`
        `tolerance`  how far apart partners may be; without, as far as they are

        A row waits until no better partner can come: by "before" not at all. With "after" and
        "either" the first row that waits holds up the rows behind it, at most until time has come
        `tolerance` beyond it, or the end. The latest row of each key of the other stream is kept,
        as long as it is within the tolerance.
        """
        operator = joining.join_asof(
            by,
            where,
            nearest,
            tolerance,
            combine=combine,
            delay_threshold=delay_threshold,
            late=late,
            idle_timeout=idle_timeout,
        )
        return self._join(operator, (other,), name, errors)

    def zip(self, *others: Stream[Any], name: str | None = None) -> Stream[tuple[Any, ...]]:
        """Give tuples of the streams' first rows, then of their second rows, and so on.

        A row waits for its partners. If they have not come at the end of the stream it is dropped,
        and counted by the run as unpaired; in an actor system it becomes a dead letter.
        """
        return self._join(Operator(kind="zip", program=Zip, joins=True), others, name)

    def _join(
        self,
        operator: Operator,
        others: tuple[Any, ...],
        name: str | None,
        errors: Errors = "fail",
        *,
        releases_gil: bool = False,
    ) -> Stream[Any]:
        if not others:
            raise GraphError(f"{operator.kind}() takes one stream or more")
        for other in others:
            if not isinstance(other, Chainable):
                raise GraphError(f"{operator.kind}() takes streams, not {safe_repr(other)}")
        return self._then(operator, name, errors, releases_gil=releases_gil, others=others)
