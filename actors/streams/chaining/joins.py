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
    """The methods that combine streams.

    Event time after them is the earliest of the streams' event times. After a join, it is the time
    of the oldest row that may still be part of an output.
    """

    __slots__ = ()

    def union(
        self,
        *others: Stream[U],
        by: Callable[[T | U], Any] | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T | U]:
        """Output the rows of this stream and of others as they arrive.

        With branches of one stream, all outputs of a row come before those of the next, branch by
        branch in the order of the arguments.

        With `by`, it is `merge()`, except that no row is late: a row that is behind its own stream
        is output immediately.
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
        """Output the rows of this stream and of others in order of time.

        With equal times, rows of the stream that is earlier among the arguments come first; rows of
        one stream keep their order. So the output does not depend on how the streams' arrivals
        interleave (the ScaleGate of Gulisano et al. 2015, section IV-A). A row waits until each
        stream after its own has reached its time, and each stream before it has passed it, by a row
        or a watermark, or until the end.

        Args:
            by: The time of a row: a function, or the name or index of the value in a row; or a
                tuple of these, one for each stream. Times are any ordered values; datetimes with a
                zone are compared as moments. None and NaN are errors of the row.
            delay_threshold: How far a row may be behind the latest of its stream; other rows wait
                that much longer. Rows further behind, or before their stream's watermark, are late.
            late: With "drop" a late row is counted, and in an actor system becomes a dead letter;
                with "side" it goes to the side output "late".
            idle_timeout: A stream without rows for this many seconds is idle: the others continue
                without it until something arrives, which may then be late. The clock is the
                system's, so runs may differ in what is late; `run_sequentially()` has no clock. If
                the caller's thread runs the operator (`manual`), it checks at each send.
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
        """Output `combine(left, right)` for pairs of a row of this stream and one of another.

        Rows are processed in the order of `merge()`; for `by`, `delay_threshold`, `late` and
        `idle_timeout` see there. Each is compared with the earlier rows of the other stream, from
        the oldest. So the outputs and their order do not depend on how rows arrive.

        A row without a partner is output, in its place in the order, as soon as no later row can be
        its partner. With "strict" that is before the first row that is too late for it; of two such
        rows, the one whose time ended first comes first. With `rows` or "three-step", it is after
        the row of its stream that pushed it out. The rest are output at the end.

        Args:
            within: How much older a partner may be; or a pair `(before, after)`: a partner may be
                older than the row of this stream by `before`, or newer by `after`. Differences of
                times must be comparable with it.
            rows: Instead, the number of latest rows of the other stream to compare with.
            where: The condition on partners: `Equal`, `Band`, or several of these combined by `&`;
                a function of both rows; or a `NativePredicate`. By default all rows are partners.
            combine: Makes the output; by default a tuple.
            how: "inner": pairs. "left", "right" and "outer": also rows without a partner, of this
                stream, of the other one, or of both, with None for the partner. "semi" and "anti":
                only the rows of this stream that have a partner, once each, or that have none.
            rule: "strict": partners are at most `within` apart. "three-step" (Kang et al. 2003, in
                section II of Gulisano et al. 2015): a row is compared with those that were at most
                `within` older than the latest of their own stream, however old they are.
            lanes: The number of workers that share the comparisons. Each stores every n-th row and
                compares it with all others that arrive (ScaleJoin, section IV-B). The outputs are
                the same. Use it for a `NativePredicate`; on a Python without an interpreter lock
                also for functions of pairs and wide bands. With worker processes, these share the
                comparisons of a function, whatever `lanes` is.

        An exception of `by`, `where` or `combine` is an error of the row that was being compared,
        which then has no output and no partner.
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
        """Output `combine(row, partner)` for each row of this stream, in order of time.

        The partner is the row of the other stream that is nearest in time, or None. For `by`,
        `delay_threshold`, `late` and `idle_timeout` see `merge()`.

        A row waits until no better partner can arrive; with "before" it does not wait. With "after"
        and "either" the first waiting row blocks the rows behind it, at most until time has
        advanced by `tolerance`, or until the end. The latest row of each key of the other stream is
        kept while it is within the tolerance.

        Args:
            where: The values that a row and its partner have in common: `Equal`, or several of
                these combined by `&`.
            nearest: "before": the latest row that is not later; of equal times the last. "after":
                the earliest row that is not earlier; of equal times the first. "either": the nearer
                of the row before and the first later one; if both are equally near, the one before.
            tolerance: How far apart partners may be; by default any distance.
            combine: Makes the output; by default a tuple.
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
        """Output tuples of the streams' first rows, then of their second rows, and so on.

        A row waits for its partners. If they are missing at the end of the stream, it is dropped
        and counted as unpaired; in an actor system it becomes a dead letter.
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
            raise GraphError(f"{operator.kind}() expects at least one stream")
        for other in others:
            if not isinstance(other, Chainable):
                raise GraphError(f"{operator.kind}() expects streams, got {safe_repr(other)}")
        return self._then(operator, name, errors, releases_gil=releases_gil, others=others)
