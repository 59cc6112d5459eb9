"""Operators with a state for each key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from callboard.core.handles import public_names
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.chaining.protocols import RowHandler
from callboard.streams.operators import receivers, states, windowing
from callboard.streams.planning.operator import Errors, Late, Operator, itself
from callboard.streams.planning.partitioning import PARTITIONS
from callboard.streams.programs.windows.window import (
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
)

if TYPE_CHECKING:
    from callboard.frequency.results import Frequent
    from callboard.streams.chaining.stream import Stream

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", covariant=True)
U = TypeVar("U")
A = TypeVar("A")


class KeyedStream(Generic[K, T]):
    """A stream that is divided by keys, for the operator that follows.

    Outputs are in the order of their input rows, whatever the keys. At a watermark and at the end,
    keys produce their outputs in the order of their first arrival. A key exists once one of its
    rows has been handled without an error. It is forgotten when none of its windows is open, or its
    object is idle, and is new when it occurs again.
    """

    __slots__ = ("_stream", "_key", "_partitions", "_partition")
    __dir__ = public_names

    def __init__(
        self,
        stream: Chainable[T],
        key: Callable[[T], K],
        partitions: int | None,
        partition: Callable[[K], int] | list[Any] | None,
    ) -> None:
        self._stream = stream
        self._key = key
        self._partitions = partitions  # None: a run knows
        self._partition = partition  # of a key; bounds of ranges; None: by its hash

    def __repr__(self) -> str:
        some = "" if self._partitions is None else f"{self._partitions} "
        return f"<KeyedStream: {some}partitions of {self._stream!r}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"a keyed stream has no {name!r}: after key_by() comes an operator with a state, "
                "and other operators go before key_by() or after that operator",
                name=name,
                obj=self,
            )

    def _then(
        self,
        operator: Operator,
        name: str | None,
        errors: Errors = "fail",
        *,
        releases_gil: bool = False,
    ) -> Stream[Any]:
        assert operator.program is not None
        program = partial(
            operator.program,
            key=self._key,
            partitions=self._partitions or PARTITIONS,
            partition=self._partition,
            fewer=self._partitions is None,
        )
        operator = replace(operator, program=program, partitions=self._partitions, is_keyed=True)
        return self._stream._then(operator, name, errors, releases_gil=releases_gil)

    def stateful(
        self,
        cls: Callable[..., RowHandler[T, U]],
        *args: Any,
        name: str | None = None,
        errors: Errors = "fail",
        sides: Iterable[str] = (),
        releases_gil: bool = False,
        **kwargs: Any,
    ) -> Stream[U]:
        """Output the results of objects, one for each key, made by `cls(*args, **kwargs)`.

        An object is made when its key first occurs. An output that is `SideOutput(name, value)`
        goes to the side output of that name in `sides`. `releases_gil` says that `receive` releases
        the interpreter lock while it works, so that several partitions are faster than one.
        """
        operator = receivers.stateful(cls, args, kwargs, sides, keyed=True)
        return self._then(operator, name, errors, releases_gil=releases_gil)

    def scan(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, A]]:
        """Output the key and `function(accumulator, row)`, its next accumulator, for each row."""
        return self._then(states.accumulator("scan", initial, function), name, errors)

    def fold(
        self,
        initial: A,
        function: Callable[[A, T], A],
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, A]]:
        """Output each key and its last accumulator, at the end of the stream."""
        return self._then(states.accumulator("fold", initial, function), name, errors)

    def count(self, *, name: str | None = None, errors: Errors = "fail") -> Stream[tuple[K, int]]:
        """Output the key of each row, and the number of its rows so far."""
        return self._then(states.count(), name, errors)

    def reduce(
        self,
        function: Callable[[list[T]], U],
        *,
        every: int,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, U]]:
        """Output a key and `function(rows)` for `every` rows of it, and for the rest at the end."""
        return self._then(states.reduce(function, every), name, errors)

    def batch(
        self, size: int, *, name: str | None = None, errors: Errors = "fail"
    ) -> Stream[tuple[K, list[T]]]:
        """Output a key and a list of `size` rows of it, and of the rest at the end."""
        return self._then(states.batch(size), name, errors)

    @overload
    def window(
        self,
        windows: TumblingWindow | SlidingWindow | SessionWindow,
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, Window[list[T]]]]: ...
    @overload
    def window(
        self,
        windows: TumblingWindow | SlidingWindow | SessionWindow,
        function: Callable[[list[T]], U],
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, Window[U]]]: ...
    def window(
        self,
        windows: TumblingWindow | SlidingWindow | SessionWindow,
        function: Callable[[list[T]], Any] = itself,
        *,
        late: Late = "drop",
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Output a key and a Window of `function(rows)` when one closes. See Stream.window()."""
        return self._then(windowing.window(windows, function, late), name, errors)

    def top_k(
        self,
        k: int,
        by: Callable[[T], Any] = itself,
        *,
        every: int | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[tuple[K, list[T]]]:
        """Output each key and its `k` rows with the largest `by(row)`. See Stream.top_k()."""
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
    ) -> Stream[tuple[K, Frequent]]:
        """Output each key and the frequent values among its rows. See Stream.frequent()."""
        return self._then(states.frequent(by, epsilon, support, every), name, errors)

    def distinct(
        self,
        by: Callable[[T], Hashable] = itself,
        *,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[T]:
        """Output the first of a key's rows with the same `by(row)`."""
        return self._then(states.distinct(by), name, errors)
