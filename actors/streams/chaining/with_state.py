"""Operators with one state, for all rows of a stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callboard.streams.chaining.chainable import Chainable
from callboard.streams.chaining.keyed import KeyedStream
from callboard.streams.chaining.protocols import BatchHandler, RowHandler
from callboard.streams.checks import check_count, check_function
from callboard.streams.operators import receivers, states, windowing
from callboard.streams.planning.operator import Errors, Late, Operator, itself
from callboard.streams.planning.partitioning import partitioning
from callboard.streams.programs.windows.event_time import Clock
from callboard.streams.programs.windows.window import (
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
    delay_of,
)

if TYPE_CHECKING:
    from callboard.frequency.results import Frequent
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)
U = TypeVar("U")
A = TypeVar("A")
K = TypeVar("K", bound=Hashable)


class WithState(Chainable[T]):
    """The stateful operators: one worker at a time runs one, and sees the rows in order."""

    __slots__ = ()

    def key_by(
        self,
        function: Callable[[T], K],
        *,
        partitions: int | None = None,
        partition: Callable[[K], int] | Sequence[K] | None = None,
    ) -> KeyedStream[K, T]:
        """Make the operator that follows keep a state for each `function(row)`, the row's key.

        One worker at a time runs a partition of the keys. Outputs and their order do not depend on
        the partitions. Datetimes with a zone are the same key if they are the same moment.

        These are errors of the operator that follows: `function` raises or returns NaN, which is
        equal to no key; `partition` raises or returns anything but a whole number; a key cannot be
        compared with the bounds; or equal keys, such as 1 and 1.0, are in different partitions.

        Args:
            function: Returns the key of a row.
            partitions: The number of partitions; by default four for each worker, from 8 to 64.
            partition: By default, the key's hash decides. A function of a key that returns a whole
                number: that number modulo `partitions` (64) is the partition. Or a list of bounds
                in ascending order, for ranges of keys: keys below the first bound are in partition
                0, keys from there to below the second in partition 1, and so on, as with
                `bisect_right()`.
        """
        check_function("key_by()'s argument", function)
        chosen, partitions = partitioning(partition, partitions)
        return KeyedStream(self, function, partitions, chosen)

    def stateful(
        self,
        cls: Callable[..., RowHandler[T, U]] | Callable[..., BatchHandler[T, U]],
        *args: Any,
        name: str | None = None,
        errors: Errors = "fail",
        sides: Iterable[str] = (),
        releases_gil: bool = False,
        **kwargs: Any,
    ) -> Stream[U]:
        """Output the results of an object, which a run makes by `cls(*args, **kwargs)`.

        An output that is `SideOutput(name, value)` goes to the side output of that name in `sides`.
        `releases_gil` says that `receive` releases the interpreter lock while it works, so that
        other operators can work at the same time.
        """
        operator = receivers.stateful(cls, args, kwargs, sides, keyed=False)
        return self._then(operator, name, errors, releases_gil=releases_gil)

    def scan(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[A]:
        """Output `function(accumulator, row)` for each row, which is the accumulator for the next.

        Return a new object each time: modifying an accumulator that was already output also changes
        it for the following operators.
        """
        return self._then(states.accumulator("scan", initial, function), name, errors)

    def fold(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[A]:
        """Output the last accumulator at the end of the stream; `initial` if there were no rows."""
        return self._then(states.accumulator("fold", initial, function), name, errors)

    def count(self, *, name: str | None = None) -> Stream[int]:
        """Output for each row the number of rows so far, including it."""
        return self._then(states.count(), name)

    def reduce(
        self,
        function: Callable[[list[T]], U],
        *,
        every: int,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[U]:
        """Output `function(rows)` for each list of `every` rows, and for the rest at the end."""
        return self._then(states.reduce(function, every), name, errors)

    def batch(self, size: int, *, name: str | None = None) -> Stream[list[T]]:
        """Output lists of `size` rows, and one of the rest at the end."""
        return self._then(states.batch(size), name)

    def to_arrow(
        self, size: int, schema: Any = None, *, name: str | None = None, errors: Errors = "fail"
    ) -> Stream[Any]:
        """Output Arrow batches of `size` rows, and one of the rest at the end.

        Rows are dictionaries or dataclass objects; with a `schema`, also tuples. A batch has the
        columns of the `schema`, or all those of its rows, in the order of their first occurrence. A
        missing value is null.

        A row that does not fit the `schema`, or the earlier rows of its batch, is an error of that
        row, and the batch has the others.
        """
        return self._then(states.to_arrow(size, schema), name, errors)

    @overload
    def window(
        self,
        windows: TumblingWindow | SlidingWindow | SessionWindow,
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Window[list[T]]]: ...
    @overload
    def window(
        self,
        windows: TumblingWindow | SlidingWindow | SessionWindow,
        function: Callable[[list[T]], U],
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Window[U]]: ...
    def window(
        self,
        windows: TumblingWindow | SlidingWindow | SessionWindow,
        function: Callable[[list[T]], Any] = itself,
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Output a Window of `function(rows)` when one closes, and of the open ones at the end.

        If a row joins two sessions, the rows of the earlier session come first, then those of the
        later one, then the row.

        Args:
            function: By default, the value is the list of the rows in order of arrival.
            late: What to do with a row whose windows have all closed: "drop" it, which the run
                counts; or "side": send it to the side output "late". With "include" no row is late:
                its closed windows open again, without the rows that they had, and close when time
                next advances.
        """
        return self._then(windowing.window(windows, function, late), name, errors)

    def top_k(
        self,
        k: int,
        by: Callable[[T], Any] = itself,
        *,
        every: int | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[list[T]]:
        """Output a list of the `k` rows with the largest `by(row)`, the largest first, at the end.

        The earlier of equal rows comes first. With `every`, the list of the rows so far is output
        after each `every` rows, and at the end if there were rows since. NaN has no place in an
        order: a `by` that returns it, or a tuple with it, is an error of the row.
        """
        return self._then(states.top_k(k, by, every), name, errors)

    def frequent(
        self,
        by: Callable[[T], Hashable] = itself,
        *,
        epsilon: float,
        support: float | None = None,
        every: int | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Frequent]:
        """Output the `by(row)` above the fraction `support` of all rows, as `Frequent`, at the end.

        They are counted with at most `1 / epsilon` counters (see `callboard.frequency`). `support`
        is `epsilon` by default. With `every`, the result for the rows so far is output after each
        `every` rows, and at the end if there were rows since. NaN is equal to nothing: a `by` that
        returns it, or a tuple with it, is an error of the row.
        """
        return self._then(states.frequent(by, epsilon, support, every), name, errors)

    def distinct(
        self,
        by: Callable[[T], Hashable] = itself,
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T]:
        """Output the first of all rows with the same `by(row)`. It remembers each `by(row)`.

        NaN is equal to nothing: a `by` that returns it, or a tuple with it, is an error of the row.
        """
        return self._then(states.distinct(by), name, errors)

    def watermarks(
        self,
        by: Callable[[T], Any],
        *,
        delay_threshold: Any = 0,
        every: int = 1,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T]:
        """Output the rows, and after each `every` rows a watermark behind their latest time.

        There is no watermark if the latest time has not changed since the last one, and none at the
        end, when windows close anyway.

        Args:
            by: The time of a row. A time that is NaN or infinite is an error of its row.
            delay_threshold: How late a row may arrive, 0 or more: a watermark is this much behind
                the latest time. It has the type of a difference of times; 0 fits all types.
            every: The number of rows between watermarks.
        """
        check_function("watermarks()'s first argument", by)
        check_count("every", every)
        program = partial(Clock, by=by, delay_threshold=delay_of(delay_threshold), every=every)
        return self._then(Operator(kind="watermarks", program=program, stateful=True), name, errors)
