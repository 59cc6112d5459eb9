"""Operators that look at one row at a time."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.recipient import Recipient
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.chaining.protocols import BatchHandler, RowHandler
from callboard.streams.checks import MOST_PARTITIONS, check_count, check_function
from callboard.streams.errors import GraphError
from callboard.streams.native import NativeOperator, NativeProgram
from callboard.streams.operators import answers, receivers
from callboard.streams.planning.operator import Errors, Operator, label_of
from callboard.streams.programs.columns.rows_and_batches import rows_of
from callboard.streams.programs.rows.stateless import Branch, Filter, FlatMap, Map, Paced, Sample

if TYPE_CHECKING:
    from callboard.streams.chaining.stream import Stream

T = TypeVar("T", covariant=True)
U = TypeVar("U")
Row = TypeVar("Row")
# A function; an object, or a class of such objects.
Receiver = (
    Callable[[Row], Iterable[U] | None]
    | RowHandler[Row, U]
    | BatchHandler[Row, U]
    | type[RowHandler[Row, U]]
    | type[BatchHandler[Row, U]]
)


class RowByRow(Chainable[T]):
    """The stateless operators: any number of workers may run one at the same time.

    `releases_gil` says that a function releases the interpreter lock while it works, so that
    several workers are faster than one.
    """

    __slots__ = ()

    @overload
    def map(
        self,
        function: Callable[[T], U],
        *,
        in_flight: None = None,
        name: str | None = None,
        errors: Errors = "fail",
        releases_gil: bool = False,
    ) -> Stream[U]: ...
    @overload
    def map(
        self,
        function: Callable[[T], Awaitable[U]],
        *,
        in_flight: int,
        ordered: bool = True,
        timeout: float | None = None,
        retries: int = 0,
        backoff: float = 0.1,
        jitter: float = 0.5,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[U]: ...
    def map(
        self,
        function: Callable[[T], Any],
        *,
        in_flight: int | None = None,
        ordered: bool = True,
        timeout: float | None = None,
        retries: int = 0,
        backoff: float = 0.1,
        jitter: float = 0.5,
        name: str | None = None,
        errors: Errors = "fail",
        releases_gil: bool = False,
    ) -> Stream[Any]:
        """Output `function(row)` for each row.

        Args:
            function: With `in_flight`, a coroutine function, which the system's event loop awaits;
                no worker waits. A run that is cancelled, or fails, cancels its coroutines.
            in_flight: The number of rows awaited at a time.
            ordered: Outputs are in the order of the rows; otherwise as they complete.
            timeout: The most seconds for each row.
            retries: How often a row that raises is tried again, after `backoff` seconds, which
                double each time.
            jitter: As for `ask()`.
        """
        if in_flight is None:
            if timeout is not None or retries or not ordered:
                raise GraphError(
                    "timeout=, retries= and ordered= need in_flight= and a coroutine function"
                )
            if inspect.iscoroutinefunction(function):
                raise GraphError(
                    "map() expected a plain function, got an async one, which needs in_flight=: "
                    f"{safe_repr(function)}"
                )
            return self._each("map", Map, function, name, errors, releases_gil)
        if releases_gil:
            raise GraphError(
                "releases_gil= is for functions that workers call, so it cannot be used with "
                "in_flight="
            )
        way = answers.asking(in_flight, ordered, timeout, retries, backoff, jitter)
        return self._then(answers.map_awaited(function, way), name, errors)

    def ask(
        self,
        recipient: Recipient[T],
        *,
        in_flight: int = 64,
        ordered: bool = True,
        timeout: float | None = None,
        retries: int = 0,
        backoff: float = 0.1,
        jitter: float = 0.5,
        combine: Callable[[T, Any], Any] | None = None,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Stream[Any]:
        """Ask an actor, or another Recipient, with each row, and output the answers.

        A separate thread asks a recipient outside this process, as for `to()`.

        Args:
            in_flight: The number of rows that wait for their answers at a time. No worker waits.
            ordered: Outputs are in the order of the rows. Otherwise they are in the order of the
                answers; watermarks and the end wait for the answers to the rows before them. Where
                branches of one stream meet again, they are in order.
            timeout: The seconds after which an ask fails with AskTimeout.
            retries: How often a failed ask is repeated, after `backoff` seconds, which double each
                time.
            jitter: From 0 to 1; each pause is shortened by a random part of it, at most this.
            combine: Makes the output, `combine(row, answer)`; by default the answer.
        """
        way = answers.asking(in_flight, ordered, timeout, retries, backoff, jitter)
        return self._then(answers.ask(recipient, combine, way), name, errors)

    def filter(
        self,
        function: Callable[[T], object],
        *,
        name: str | None = None,
        errors: Errors = "fail",
        releases_gil: bool = False,
    ) -> Stream[T]:
        """Output the rows for which `function(row)` is true."""
        return self._each("filter", Filter, function, name, errors, releases_gil)

    def flat_map(
        self,
        function: Callable[[T], Iterable[U] | None],
        *,
        name: str | None = None,
        errors: Errors = "fail",
        sides: Iterable[str] = (),
        releases_gil: bool = False,
    ) -> Stream[U]:
        """Output all items that `function(row)` returns or yields, for each row; None has no items.

        An output that is `SideOutput(name, value)` goes to the side output of that name in `sides`.

        At most 8,192 items of an iterator are in memory. The iterating thread runs the following
        operators on them before it takes the next ones. If the iterator raises later, the earlier
        items may already be processed. All items of a row are held in memory first if a following
        operator has several inputs, is keyed and divided, waits for answers or runs on other
        threads, if `threading` is "manual", and with `errors="skip"` or "side". `cancel()` ends a
        generator at its next `yield`.
        """
        operator = receivers.flat_map(function, sides)
        return self._then(operator, name, errors, releases_gil=releases_gil)

    def stateless(
        self,
        what: Receiver[T, U],
        *args: Any,
        name: str | None = None,
        errors: Errors = "fail",
        sides: Iterable[str] = (),
        releases_gil: bool = False,
        **kwargs: Any,
    ) -> Stream[U]:
        """Output the results of a function, an object with `receive`, or an instance of a class.

        A class is called with the other arguments, once for each run. Several workers may call the
        object at once, so it must only read its attributes. See `RowHandler` for its methods.
        """
        operator = receivers.stateless(what, args, kwargs, sides)
        return self._then(operator, name, errors, releases_gil=releases_gil)

    def map_batches(
        self,
        function: Callable[[T], U],
        *,
        name: str | None = None,
        errors: Errors = "fail",
        releases_gil: bool = True,
    ) -> Stream[U]:
        """Output `function(batch)` for each Arrow batch or NumPy array; each is one row here."""
        return self._each("map_batches", Map, function, name, errors, releases_gil)

    def unbatch(self, *, name: str | None = None, errors: Errors = "fail") -> Stream[Any]:
        """Output the rows of each batch, table or frame, or the items of each array or list.

        Rows of Arrow batches and tables, and of pandas and Polars frames, become dictionaries. A
        string or a dictionary is a TypeError of its row.
        """
        program = partial(FlatMap, function=rows_of)
        return self._then(Operator(kind="rows", program=program), name, errors)

    def native(
        self,
        cls: type[NativeOperator],
        *args: Any,
        partitions: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Stream[Any]:
        """Output the results of a native operator, made by `cls(*args, **kwargs)` for each run.

        Rows that are numbers, `NativeRecord`, objects with memory, or `Tagged` become native
        values; any other row ends the run. With `partitions` the operator is keyed by its `key_of`,
        with an object for each partition. Watermarks end here. See `docs/streams-native.md`.
        """
        if not (isinstance(cls, type) and issubclass(cls, NativeOperator)):
            raise GraphError(f"native() expects a subclass of NativeOperator, got {safe_repr(cls)}")
        if partitions is not None:
            partitions = check_count("partitions", partitions, most=MOST_PARTITIONS)
            if "partition" in kwargs:
                raise GraphError(
                    "partition= belongs to key_by(): the keys of a native operator come from its "
                    "key_of()"
                )
        elif cls.kind not in ("stateless", "stateful"):
            raise GraphError(
                f"{cls.__name__}.kind must be 'stateless' or 'stateful', got {cls.kind!r}"
            )
        make = partial(cls, *args, **kwargs)
        operator = Operator(
            kind="native",
            program=partial(NativeProgram, make=make, partitions=partitions or 0),
            in_chunks=True,
            label=cls.__name__,
            partitions=partitions or 1,
        )
        return self._then(operator, name, releases_gil=True)

    def sample(
        self,
        *,
        every: int | None = None,
        fraction: float | None = None,
        seed: int = 0,
        name: str | None = None,
    ) -> Stream[T]:
        """Output the first of each `every` rows, or a `fraction` of all, chosen by `seed`.

        Watermarks count as rows. The same rows are chosen in every run.
        """
        if (every is None) == (fraction is None):
            raise GraphError("sample() expects either every= or fraction=")
        if every is not None:
            every = check_count("every", every)
            program, detail = partial(Sample, every=every), f"1 of {every:,}"
        else:
            fraction = checks.finite("fraction", fraction, error=GraphError)
            if not 0 <= fraction <= 1:
                raise GraphError(f"fraction must be a number from 0 to 1, got {fraction!r}")
            seed = checks.whole("seed", seed, 0, 2**64 - 1, error=GraphError)
            program, detail = partial(Sample, fraction=fraction, seed=seed), f"{fraction:g} of all"
        return self._then(Operator(kind="sample", program=program, detail=detail), name)

    def throttle(self, rate: float, *, name: str | None = None) -> Stream[T]:
        """Output the rows, and limit a run to at most `rate` of them a second.

        After each batch it waits until the batch's rows are within the rate. A manual system does
        not wait.
        """
        rate = checks.finite("rate", rate, error=GraphError)
        if rate < 1e-9:
            raise GraphError(
                f"rate must be a number of rows per second of at least 1e-9, got {rate!r}"
            )
        program = partial(Paced, rate=rate)
        detail = f"{rate:g} rows/s"
        operator = Operator(kind="throttle", program=program, stateful=True, detail=detail)
        return self._then(operator, name)

    def branch(
        self, *functions: Callable[[T], object], name: str | None = None
    ) -> tuple[Stream[T], ...]:
        """Divide the rows: a stream for each function, of the rows for which it is the first true.

        One more stream, the last, has the rows for which none is true.
        """
        if not functions:
            raise GraphError("branch() expects at least one function")
        for function in functions:
            check_function("branch()'s argument", function)
        ports = (*map(str, range(1, len(functions) + 1)), "rest")
        program = partial(Branch, functions=list(functions))
        branched = self._then(Operator(kind="branch", program=program, ports=ports), name)
        return branched._outputs()

    def _each(
        self,
        kind: str,
        program: type[Map],
        function: Any,
        name: str | None,
        errors: Errors,
        gil: bool,
    ) -> Stream[Any]:
        check_function(f"{kind}()'s argument", function)
        label = label_of(function, kind)
        operator = Operator(kind=kind, program=partial(program, function=function), label=label)
        return self._then(operator, name, errors, releases_gil=gil)
