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
    """The stateless operators: any number of workers may be in one at once.

    `releases_gil` says that a function releases the interpreter lock while it works, so that
    several workers in it are quicker than one.
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
        """Give `function(row)` for each row.

        With `in_flight` the function is a coroutine function. It is awaited on the system's event
        loop for so many rows at a time, and no worker waits. Outputs are in the order of the rows;
        with `ordered=False`, as they come. A row takes `timeout` seconds at most. A row that raises
        is tried `retries` times again, after `backoff` seconds, which double each time; `jitter`
        is as for `ask()`. A run that is cancelled, or fails, cancels the coroutines that are left.
        """
        if in_flight is None:
            if timeout is not None or retries or not ordered:
                raise GraphError(
                    "timeout=, retries= and ordered= go with in_flight=, of a coroutine function"
                )
            if inspect.iscoroutinefunction(function):
                raise GraphError(
                    "map() expected a plain function, got an async one, which needs in_flight=: "
                    f"{safe_repr(function)}"
                )
            return self._each("map", Map, function, name, errors, releases_gil)
        if releases_gil:
            raise GraphError("releases_gil= is for functions that workers call, not for in_flight=")
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
        """Ask an actor, or another Recipient, with each row, and give the answers.

        `in_flight` rows at a time wait for their answers, and no worker does. An output is the
        answer, or `combine(row, answer)`. Outputs are in the order of the rows. With
        `ordered=False` they leave as the answers come; watermarks and the end wait for the answers
        of the rows before them. Where branches of one stream meet again, they are in order.

        An answer that takes more than `timeout` seconds is an AskTimeout. A row whose ask failed is
        asked `retries` times again, after `backoff` seconds, which double each time. Each pause is
        shorter by a random part of it, of `jitter` at most: 0 to 1.

        A thread of its own asks a recipient that is no actor of this process, as for `to()`.
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
        """Give the rows for which `function(row)` is true."""
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
        """Give all items that `function(row)` returns or yields, for each row; none for None.

        If it is an iterator, 8,192 items are in memory at a time. They pass the operators behind,
        on the thread that iterates, before the next is taken. If it raises later, they may have
        gone on. All items of a row are in memory first if an operator behind has several inputs, is
        keyed and divided, waits for answers or runs on other threads, if `threading` is "manual",
        and with `errors="skip"` or "side". `cancel()` ends a generator at its next `yield`. An
        output that is `SideOutput(name, value)` goes to the side output of that name in `sides`.
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
        """Give the outputs of a function, of an object with `receive`, or of one of a class.

        A class is called with the other arguments, once for each run. Several workers may call the
        object at once, so it only reads its attributes; see `RowHandler` for its methods.
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
        """Give `function(batch)` for each Arrow batch or NumPy array; each is one row here."""
        return self._each("map_batches", Map, function, name, errors, releases_gil)

    def unbatch(self, *, name: str | None = None, errors: Errors = "fail") -> Stream[Any]:
        """Give the rows of Arrow batches and tables, and of frames of pandas and Polars, as
        dictionaries, and the items of arrays and lists. A text or a dictionary is an error of its
        row, a TypeError.
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
        """Give the outputs of a native operator, made by `cls(*args, **kwargs)` for each run.

        Rows that are numbers, `NativeRecord`, objects with memory, or `Tagged` become native
        values; any other ends the run. With `partitions` the operator is keyed by its `key_of`:
        there is an object for each partition. Watermarks end here. See docs/streams-native.md.
        """
        if not (isinstance(cls, type) and issubclass(cls, NativeOperator)):
            raise GraphError(f"native() expects a subclass of NativeOperator, got {safe_repr(cls)}")
        if partitions is not None:
            partitions = check_count("partitions", partitions, most=MOST_PARTITIONS)
            if "partition" in kwargs:
                raise GraphError(
                    "partition= is key_by()'s: the keys of a native operator go by their key_of()"
                )
        elif cls.kind not in ("stateless", "stateful"):
            raise GraphError(f"{cls.__name__}.kind is 'stateless' or 'stateful', not {cls.kind!r}")
        make = partial(cls, *args, **kwargs)
        operator = Operator(
            kind="native",
            program=partial(NativeProgram, make=make, partitions=partitions or 0),
            in_lots=True,
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
        """Give the first of each `every` rows; or a `fraction` of all, chosen by `seed`.

        Watermarks count as rows. The same rows are chosen in every run.
        """
        if (every is None) == (fraction is None):
            raise GraphError("sample() takes one of every= and fraction=")
        if every is not None:
            every = check_count("every", every)
            program, detail = partial(Sample, every=every), f"1 of {every:,}"
        else:
            fraction = checks.finite("fraction", fraction, error=GraphError)
            if not 0 <= fraction <= 1:
                raise GraphError(f"fraction is a number from 0 to 1, not {fraction!r}")
            seed = checks.whole("seed", seed, 0, 2**64 - 1, error=GraphError)
            program, detail = partial(Sample, fraction=fraction, seed=seed), f"{fraction:g} of all"
        return self._then(Operator(kind="sample", program=program, detail=detail), name)

    def throttle(self, rate: float, *, name: str | None = None) -> Stream[T]:
        """Give the rows, and have a run take at most `rate` of them a second.

        After each batch it waits for as long as the batch's rows may take. A manual system does not
        wait.
        """
        rate = checks.finite("rate", rate, error=GraphError)
        if rate < 1e-9:
            raise GraphError(f"rate is a number of rows a second, 1e-9 or more, not {rate!r}")
        program = partial(Paced, rate=rate)
        detail = f"{rate:g} rows/s"
        operator = Operator(kind="throttle", program=program, stateful=True, detail=detail)
        return self._then(operator, name)

    def branch(
        self, *functions: Callable[[T], object], name: str | None = None
    ) -> tuple[Stream[T], ...]:
        """Divide the rows: a stream for each function, with the rows that it is true for first.

        One more stream, the last, has the rows that none is true for.
        """
        if not functions:
            raise GraphError("branch() takes one function or more")
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
