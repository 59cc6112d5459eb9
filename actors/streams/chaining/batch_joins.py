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
    """`merge` and `join` for streams of Arrow record batches, whose rows stay in columns.

    The output rows and their order are those of `merge()` and `join()` for the same rows as
    dictionaries. Output batches have `n` rows, and the last one the rest, however the input was
    divided. Requires pyarrow and NumPy.

    Columns keep their types, with two exceptions. Views and run-end encoded columns become plain.
    Dictionaries, which may differ from batch to batch, become unordered, with 32-bit indices.
    Columns are `not null` if all input and output rows are. A batch is smaller than `n` if a
    column's texts, bytes or lists would need more than 2 GiB.

    `by` is the column of the rows' times, or a tuple with one for each stream: integers, floats,
    timestamps, dates or durations, of the same kind in all streams. Lengths of time are numbers or,
    except for integers and floats, `timedelta`s; watermarks are times like those of the rows. An
    error names the stream, counted from 1, the column, and the row of the batch, counted from 0. A
    null or NaN time is an error of the whole batch, and so is a column that is missing, of an
    unusable type, or of another type than before. Late rows are treated one by one: each is
    counted, or is put with the other late rows of its batch in a batch of the side output "late".
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
        """Output the rows of this stream's batches and of others' in order of time.

        All streams must have the same columns. For `delay_threshold`, `late` and `idle_timeout` see
        `merge()`. Rows also wait for a full batch of `n`.
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
        """Output pairs of a row of this stream's batches and one of another's, in batches of `n`.

        A pair has the columns of both rows. For a row without a partner, the other columns are
        null. With "semi" and "anti", there are only this stream's columns. For `within`, `rows`,
        `how`, `rule`, `delay_threshold`, `late`, `idle_timeout` and `lanes` see `join()`.

        Args:
            where: `Equal` and `Band` with names of columns, or up to seven of these combined by
                `&`. `Equal` compares numbers, times, strings, bytes, booleans and decimals, `Band`
                numbers and times; both columns must be of the same kind. Null is equal to null;
                null and NaN are within no `distance`; NaN in a column of `Equal` is an error.
                Partners are found in native code, without the interpreter lock (Gulisano et al.
                2015, section II). Or a function, called for each row with the row, as a dictionary,
                and a record batch of the other stream's rows to compare it with. It returns a
                boolean array of NumPy or Arrow that is true for partners; null counts as false. Or
                a tuple of such functions, for rows of this stream and of the other. With `lanes`,
                that many workers call it at the same time. An exception is an error of that one
                row, as a batch of one, which then has no output.
            suffix: Added to the right column's name if both streams have a column of that name.
            schemas: A `pyarrow.Schema` for each stream, or None, instead of waiting for a first
                batch. A row without a partner also has the other stream's columns, and waits until
                these are known; if they are unknown at the end, the run fails. So give `schemas`
                with "left", "right" and "outer" if a stream may have no batches.
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
