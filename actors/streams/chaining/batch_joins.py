"""Operators with several inputs whose rows are Arrow batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from callboard.streams.chaining.joins import Joins
from callboard.streams.operators import joining_batches
from callboard.streams.operators.joining import How, LateRow, Rule
from callboard.streams.planning.operator import Errors
from callboard.streams.programs.joins.predicates import Predicate

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)

# A pyarrow.Schema of each of two streams, or None for one whose columns are not known.
Schemas = tuple[Any, Any]

# The rows of a batch that are partners of a row, a dictionary, of the other stream.
Mask = Callable[[dict[str, Any], Any], Any]


class BatchJoins(Joins[T]):
    """`merge` and `join` for streams of record batches of Arrow, whose rows stay columns.

    The rows that come out, and their order, are those that `merge()` and `join()` give of the same
    rows as dictionaries. Batches have `n` rows, and the last one has the rest, however the streams
    were cut. They need pyarrow and NumPy.

    Columns keep their types, with two exceptions. Views and run ends come out plain. Dictionaries,
    which may differ from batch to batch, come out unordered, with numbers of 32 bits. They are `not
    null` if all rows that come and go are. A batch is smaller than `n` if a column's texts, bytes
    or lists would need more than 2 GiB.

    `by` is the column of the rows' times, or a tuple with one for each stream: integers, floats,
    timestamps, dates or durations, of one sort in all streams. Lengths of time are numbers or, of
    all but the first two, `timedelta`s; watermarks are times as rows have. An error names the
    stream, counted from 1, the column, and the row of the batch, counted from 0. Null or NaN as a
    time is an error; so is a column that is missing, or of an unusable type, or of another type
    than before. It is an error of the whole batch. A late row counts by itself: it is counted, or
    is with the other late ones of its batch in a batch of the side output "late".
    """

    __slots__ = ()

    def merge_batches(
        self,
        *others: Stream[Any],
        by: str | tuple[str, ...],
        n: int = 8_192,
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Give the rows of this stream's batches and of others' in order of time.

        All streams have the same columns. For `delay_threshold`, `late` and `idle_timeout` see
        `merge()`; rows that wait until a batch is full wait for that all the same.
        """
        operator = joining_batches.merge_batches(
            by, 1 + len(others), n, delay_threshold, late, idle_timeout
        )
        return self._join(operator, others, name, errors, releases_gil=True)

    def join_batches(
        self,
        other: Stream[Any],
        *,
        by: str | tuple[str, str],
        within: Any = None,
        rows: int | None = None,
        where: Predicate | Mask | tuple[Mask, Mask] | None = None,
        how: How = "inner",
        rule: Rule = "strict",
        suffix: str = "_right",
        schemas: Schemas | None = None,
        n: int = 8_192,
        delay_threshold: Any = 0,
        late: LateRow = "drop",
        idle_timeout: float | None = None,
        lanes: int = 1,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Give pairs of a row of this stream's batches and one of another's, in batches of `n`.

        A pair has the columns of both rows side by side. A name that both streams have gets the
        `suffix` in the right one. The missing columns of a row without a partner are null. With
        "semi" and "anti" there are the columns of this stream alone. For `within`, `rows`, `how`,
        `rule`, `delay_threshold`, `late`, `idle_timeout` and `lanes` see `join()`.

        `where` is `Equal` and `Band` by names of columns, or several of these by `&`, up to seven.
        `Equal` is about numbers, times, strings, bytes, booleans and decimals, `Band` about numbers
        and times; both columns are of one sort. Null is equal to null, and near to nothing, as NaN
        is; NaN in a column of `Equal` is an error. Partners are found in native code, without the
        interpreter lock (Gulisano et al. 2015, section II).

        Or `where` is a function. It is called for each row with the row, as a dictionary, and a
        record batch of the other stream's rows to compare it with. It returns a boolean array of
        NumPy or Arrow that is true for partners; null counts as false. A tuple has a function for
        rows of this stream and one for those of the other. The worker that runs the join calls it,
        or with `lanes` as many of them at the same time. An exception is an error of that one row,
        a batch of one, which then gives nothing.

        Rows without a partner have the columns of the other stream, too. These are known from its
        first batch, also if that has no rows, or from `schemas`. That is a `pyarrow.Schema` of each
        stream, or None, and counts as a first batch without rows. Rows wait until they are known;
        if they are not at the end, and rows wait, the run fails. So give `schemas` with "left",
        "right" and "outer", where a stream may bring no batch.
        """
        operator = joining_batches.join_batches(
            by,
            within,
            rows,
            where,
            how,
            rule,
            suffix,
            schemas,
            n,
            delay_threshold,
            late,
            idle_timeout,
            lanes,
        )
        return self._join(operator, (other,), name, errors, releases_gil=True)
