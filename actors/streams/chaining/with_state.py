"""Operators with one state, for all rows of a stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callboard.streams.chaining.chainable import Chainable
from callboard.streams.chaining.keyed import KeyedStream
from callboard.streams.chaining.protocols import BatchHandler, RowHandler
from callboard.streams.checks import check_count, check_function
from callboard.streams.operators import (
    accumulators,
    distinct,
    frequent,
    lists,
    receivers,
    top_k,
    windowing,
)
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
    """The stateful operators: one worker at a time, which sees the rows in order."""

    __slots__ = ()

    def key_by(
        self,
        function: Callable[[T], K],
        *,
        partitions: int | None = None,
        partition: Callable[[K], int] | Sequence[K] | None = None,
    ) -> KeyedStream[K, T]:
        """Have the operator that follows keep a state for each `function(row)`, the row's key.

        Workers share the keys by partitions: one worker at a time is in a partition. There are four
        for each worker, 8 to 64, if you do not say how many. If `function` raises or returns NaN,
        which is equal to no key, the operator that follows has raised. Datetimes with a zone are
        one key if they are one moment.

        A key's partition comes from its hash. `partition` puts keys where you want them. It is a
        function of a key that returns a whole number, and that number modulo `partitions` (64) is
        the partition. Or it is a list of bounds in ascending order, for ranges of keys: keys below
        the first bound are in partition 0, keys from there to below the second in partition 1, and
        so on, as `bisect_right()` finds them. Outputs and their order do not depend on it.

        The operator that follows has raised if `partition` raises or returns anything else, if a
        key cannot be compared with the bounds, and if equal keys, such as 1 and 1.0, are not in one
        partition.
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
        """Give the outputs of an object, which a run makes by `cls(*args, **kwargs)`.

        An output that is `SideOutput(name, value)` goes to the side output of that name in `sides`.
        `releases_gil` says that `receive` releases the interpreter lock while it works, so that
        other operators can work meanwhile.
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
        """Give `function(accumulator, row)` for each row; it is the accumulator of the next.

        It is a new object each time: one that was given and is changed then has changed for the
        operators behind, too.
        """
        return self._then(accumulators.accumulator("scan", initial, function), name, errors)

    def fold(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[A]:
        """Give the last accumulator, at the end of the stream; `initial` if there was no row."""
        return self._then(accumulators.accumulator("fold", initial, function), name, errors)

    def count(self, *, name: str | None = None) -> Stream[int]:
        """Give for each row how many have come, with this one."""
        return self._then(accumulators.count(), name)

    def reduce(
        self,
        function: Callable[[list[T]], U],
        *,
        every: int,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[U]:
        """Give `function(rows)` for each `every` rows, as a list, and for those left at the end."""
        return self._then(lists.reduce(function, every), name, errors)

    def batch(self, size: int, *, name: str | None = None) -> Stream[list[T]]:
        """Give lists of `size` rows, and one of those left at the end."""
        return self._then(lists.batch(size), name)

    def to_arrow(
        self, size: int, schema: Any = None, *, name: str | None = None, errors: Errors = "fail"
    ) -> Stream[Any]:
        """Give Arrow batches of `size` rows, and one of those left at the end.

        Rows are dictionaries or dataclass objects; with a `schema`, tuples as well. A batch has the
        columns of the `schema`, or all that a row of it has, in the order in which they first come.
        A value that is missing is null.

        A row that does not fit the `schema`, or the rows of its batch before it, is an error of its
        own, and the batch has the others.
        """
        return self._then(lists.to_arrow(size, schema), name, errors)

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
        """Give a Window of `function(rows)` when one closes, and of the open ones at the end.

        Without a function it is the list of the rows, as they came. Where a row joins two sessions,
        the rows of the earlier session come first, then those of the later one, then the row.

        `late` says what becomes of a row whose windows have all closed: "drop", which the run
        counts; or "side", to the side output "late". With "include" no row is late. Its windows
        that have closed open anew, without the rows that they had, and close when time next moves
        on.
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
        """Give a list of the `k` rows with the largest `by(row)`, the largest first, at the end.

        The earlier of equal rows comes first. With `every`, the list of the rows so far is given
        after each `every` rows, and at the end if rows have come since. NaN has no place in an
        order, so a `by` that returns it, or a tuple with NaN in it, counts as one that raised.
        """
        return self._then(top_k.top_k(k, by, every), name, errors)

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
        """Give the `by(row)` above the fraction `support` of all rows, as `Frequent`, at the end.

        They are counted with at most `1 / epsilon` counters (see `callboard.frequency`); without
        `support`, it is `epsilon`. With `every`, those of the rows so far are given after each
        `every` rows, and at the end if rows have come since. NaN is equal to nothing, so a `by`
        that returns it, or a tuple with NaN in it, counts as one that raised.
        """
        return self._then(frequent.frequent(by, epsilon, support, every), name, errors)

    def distinct(
        self,
        by: Callable[[T], Hashable] = itself,
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T]:
        """Give the first of all rows whose `by(row)` is equal. It remembers each `by(row)`.

        NaN is equal to nothing: where `by` returns it, or a tuple with NaN in it, it has raised.
        """
        return self._then(distinct.distinct(by), name, errors)

    def watermarks(
        self,
        by: Callable[[T], Any],
        *,
        delay_threshold: Any = 0,
        every: int = 1,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T]:
        """Give the rows, and after each `every` a watermark `delay_threshold` behind their latest
        `by(row)`.

        It gives none if the latest time is still that of the last watermark, and none at the end,
        where windows close anyway. `delay_threshold` is how late a row may come, 0 or more. It has
        the type of a difference of times; 0 fits all types. A time that is NaN or infinite is an
        error of its row.
        """
        check_function("watermarks()'s first argument", by)
        check_count("every", every)
        program = partial(Clock, by=by, delay_threshold=delay_of(delay_threshold), every=every)
        return self._then(Operator(kind="watermarks", program=program, stateful=True), name, errors)
