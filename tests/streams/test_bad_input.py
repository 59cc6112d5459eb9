"""A wrong function, number, name, graph or input raises an error with its value at the call.

`tests/core/test_checks.py` has the kinds of values that a check of numbers and switches refuses.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator
from io import StringIO
from typing import Any, cast

import pytest

from callboard import Actor, ActorSystem
from callboard.core.errors import ConfigError
from callboard.messages import DeadLetter
from callboard.streams import (
    FailedRow,
    Graph,
    GraphError,
    RowCounts,
    SessionWindow,
    StreamError,
    TumblingWindow,
    entry,
)
from callboard.streams.programs.rows.files import line_of

# What these are given is wrong for type checkers as well.
rows = cast(Any, entry("rows"))
keyed = cast(Any, entry("rows").key_by(hash))


# --- functions ----------------------------------------------------------------------------------


async def soon(row: Any, other: Any = None) -> Any:
    return row


async def soon_many(row: Any, other: Any = None) -> AsyncIterator[Any]:
    yield row


def many(row: Any, other: Any = None) -> Iterator[Any]:
    yield row


class Soon:
    async def __call__(self, row: Any, other: Any = None) -> Any:
        return row

    async def method(self, row: Any, other: Any = None) -> Any:
        return row

    @staticmethod
    async def static(row: Any, other: Any = None) -> Any:
        return row


ASYNC = [
    soon,
    soon_many,
    functools.partial(soon, 1),
    functools.partial(functools.partial(soon), 1),
    Soon(),
    functools.partial(Soon(), 1),
    Soon().method,
    Soon.static,
    functools.partial(Soon().method, 1),
]
TAKE_A_FUNCTION: dict[str, Callable[[Any], object]] = {
    "map": lambda f: rows.map(f),
    "filter": lambda f: rows.filter(f),
    "map_batches": lambda f: rows.map_batches(f),
    "branch": lambda f: rows.branch(bool, f),
    "key_by": lambda f: rows.key_by(f),
    "scan": lambda f: rows.scan(0, f),
    "fold": lambda f: rows.fold(0, f),
    "reduce": lambda f: rows.reduce(f, every=2),
    "window": lambda f: rows.window(TumblingWindow(2), f),
    "tumbling": lambda f: TumblingWindow(2, by=f),
    "session": lambda f: SessionWindow(2, by=f),
    "top_k": lambda f: rows.top_k(2, f),
    "distinct": lambda f: rows.distinct(f),
    "frequent": lambda f: rows.frequent(f, epsilon=0.1),
    "watermarks": lambda f: rows.watermarks(f),
    "union": lambda f: rows.union(entry("others"), by=f),
    "to": lambda f: rows.to(f),
    "keyed scan": lambda f: keyed.scan(0, f),
    "keyed window": lambda f: keyed.window(TumblingWindow(2), f),
}
TAKE_ONE_THAT_YIELDS: dict[str, Callable[[Any], object]] = {
    "flat_map": lambda f: rows.flat_map(f),
    "stateless": lambda f: rows.stateless(f),
}
ALL = TAKE_A_FUNCTION | TAKE_ONE_THAT_YIELDS


@pytest.mark.parametrize(
    ("operator", "function"), [*((each, soon) for each in ALL), *(("map", each) for each in ASYNC)]
)
def test_no_operator_takes_an_async_function(operator: str, function: Any) -> None:
    with pytest.raises(GraphError, match=r"got an async one, .*: .*[sS]oon"):
        ALL[operator](function)


@pytest.mark.parametrize("operator", TAKE_A_FUNCTION)
def test_an_operator_that_wants_a_value_takes_no_function_that_yields(operator: str) -> None:
    for function in (many, functools.partial(many, 1)):
        with pytest.raises(GraphError, match=r"returns a value, got a generator function: .*many"):
            TAKE_A_FUNCTION[operator](function)


@pytest.mark.parametrize(
    ("operator", "value"),
    [*((each, 3) for each in ALL), *(("map", each) for each in ("upper", None, [len], entry("x")))],
)
def test_a_value_that_cannot_be_called_is_refused_as_a_function(operator: str, value: Any) -> None:
    sink = operator == "to"
    wanted = (
        "must be a path, a function, a ref or .*, got" if sink else ": expected a function, got"
    )
    with pytest.raises(GraphError, match=wanted):
        ALL[operator](value)


@pytest.mark.parametrize("method", ["receive", "receive_many", "on_watermark", "on_final"])
def test_an_object_of_a_stream_has_no_async_methods(method: str) -> None:
    async def hook(self: Any, *args: Any) -> list[Any]:
        return []

    cls = type("Later", (), {"receive": lambda self, row: [row], method: hook})
    with pytest.raises(GraphError, match=rf"Later\.{method}\(\): expected a plain function"):
        rows.stateful(cls)
    if method.startswith("receive"):
        for what in (cls, cls()):
            with pytest.raises(GraphError, match=rf"{method}\(\): expected a plain function"):
                rows.stateless(what)


def test_is_idle_is_not_a_generator() -> None:
    class Keeper:
        def receive(self, row: int) -> Iterator[int]:
            yield row  # which this may

        def on_watermark(self, time: int) -> list[int]:
            return []

        def is_idle(self) -> Iterator[bool]:
            yield False

    with pytest.raises(GraphError, match=r"Keeper\.is_idle\(\): expected a function that returns"):
        keyed.stateful(Keeper)


def test_an_actor_class_is_not_a_sink() -> None:
    class Receiver(Actor[int]):
        def receive(self, message: int) -> None: ...

    with pytest.raises(
        GraphError, match="an actor that ends a stream must be given by its ref, got"
    ):
        rows.to(Receiver)


@pytest.mark.parametrize(("sink", "hint"), [([], ""), (StringIO(), ": for a file, give its path")])
def test_a_sink_has_put_and_close(sink: Any, hint: str) -> None:
    wanted = r"a path, a function, a ref or an object with put\(\) and close\(\)"
    with pytest.raises(GraphError, match=rf"a sink must be {wanted}, got .*{hint}$"):
        rows.to(sink)


@pytest.mark.parametrize("method", ["map", "count", "join", "window", "to", "run_on"])
def test_an_argument_that_an_operator_does_not_have_is_refused_by_its_stream(method: str) -> None:
    with pytest.raises(TypeError, match=rf"Stream\.{method}\(\) got an unexpected .* 'wrong'"):
        getattr(rows, method)(wrong=1)


# --- numbers, switches and names ------------------------------------------------------------------


class Keeps:
    def receive(self, row: Any) -> list[Any]:
        return [row]


@pytest.mark.parametrize(
    "operator",
    [
        lambda n: rows.batch(n),
        lambda n: rows.sample(every=n),
        lambda n: rows.top_k(2, every=n),
        lambda n: rows.frequent(epsilon=0.1, every=n),
        lambda n: rows.to_arrow(n),
        lambda n: rows.reduce(sum, every=n),
        lambda n: rows.window(TumblingWindow(n)),
        lambda n: rows.collect().run_sequentially({"rows": []}, batch_size=n),
    ],
)
def test_a_number_of_rows_is_a_whole_number_of_1_or_more(operator: Any) -> None:
    with pytest.raises(GraphError, match=r"must be a whole number .*, got 0$"):
        operator(0)


def test_a_number_of_partitions_is_from_1_to_4096() -> None:
    rows.key_by(hash, partitions=None)  # the run chooses
    bounds = "partitions must be a whole number from 1 to 4096, got 1000000000"
    with pytest.raises(GraphError, match=bounds):
        rows.key_by(hash, partitions=10**9)
    stream = rows.key_by(hash, partitions=4096)
    assert stream.count().collect().run_sequentially({"rows": [1]}) == [(1, 1)]


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        (lambda v: rows.throttle(v), [0, 1e-300, math.nan], r"rate must be a .*number.*, got"),
        (
            lambda v: rows.sample(fraction=v),
            [-0.1, 1.1, "0.5"],
            r"fraction must be a .*number.*, got",
        ),
        (
            lambda v: rows.sample(fraction=0.5, seed=v),
            [2**64],
            "seed must be a whole number from 0",
        ),
        (
            lambda v: rows.flat_map(list, sides=v),
            ["late", b"late", 3],
            "sides must be a list of names",
        ),
        (lambda v: rows.flat_map(list, sides=[v]), [3, ""], "name must be a non-empty string"),
        (lambda v: rows.to(v), [""], "a file's name must be a non-empty string, got ''"),
    ],
)
def test_an_argument_outside_its_range_is_refused(operator: Any, values: Any, text: str) -> None:
    for value in values:
        with pytest.raises(GraphError, match=text):
            operator(value)


@pytest.mark.parametrize(
    "operator",
    [
        lambda flag: TumblingWindow(2, by=abs, ordered=flag),
        lambda flag: SessionWindow(2, by=abs, ordered=flag),
        lambda flag: rows.map(abs, releases_gil=flag),
        lambda flag: rows.map_batches(abs, releases_gil=flag),
        lambda flag: rows.stateful(Keeps, releases_gil=flag),
        lambda flag: keyed.stateful(Keeps, releases_gil=flag),
        lambda flag: rows.flat_map(list, releases_gil=flag),
    ],
)
def test_a_switch_is_true_or_false(operator: Any) -> None:
    with pytest.raises(GraphError, match=r"(releases_gil|ordered) must be True or False, got"):
        operator("no")


WRONG_OPTIONS: dict[str, list[Any]] = {
    "batch_size": [0, 1.5, 10**30],
    "markers": [-1, 2**40],
    "window": [0, 3, 2**30],
    "time_slice": [0, 2, math.nan],
}


@pytest.mark.parametrize(
    ("option", "value"),
    [(option, value) for option, all_ in WRONG_OPTIONS.items() for value in all_],
)
def test_an_option_of_a_run_is_checked_at_its_start(option: str, value: Any) -> None:
    with ActorSystem() as system:
        with pytest.raises(ConfigError, match=rf"{option} must be .* got {re.escape(str(value))}"):
            system.run(rows.collect(), **{option: value})
        assert system.actors == []


def test_a_tally_keeps_a_whole_number_of_failures() -> None:
    with pytest.raises(ValueError, match="kept must be a whole number"):
        RowCounts(kept=-1)


@pytest.mark.parametrize(("every", "total"), [(math.nan, 1), (0.5, -1)])
def test_a_progress_is_told_numbers(every: Any, total: Any) -> None:
    with ActorSystem() as system:
        run = system.run(rows.collect())
        with pytest.raises(ValueError, match=r"must be a .*number"):
            run.progress(total, every=every)
        run.finish(timeout=60)


# --- graphs and inputs ----------------------------------------------------------------------------


@pytest.mark.parametrize("what", [rows, rows.map(abs), keyed, "graph", None, Graph])
def test_a_stream_without_a_sink_does_not_run(what: Any) -> None:
    message = r"run\(\) expected a net, or a graph, which a sink"
    with ActorSystem() as system, pytest.raises(GraphError, match=message):
        system.run(what)


@pytest.mark.parametrize("inputs", ["rows", 3, None, [3], [("rows", [1], 2)], ["ab"]])
def test_inputs_are_rows_by_entry(inputs: Any) -> None:
    with pytest.raises(GraphError, match=r"inputs must be .*, got"):
        rows.collect().run_sequentially(inputs)


@pytest.mark.parametrize("what", ["ab", b"ab", {"a": 1}, 5, None])
def test_a_single_row_is_refused_where_rows_are_wanted(what: Any) -> None:
    with pytest.raises(TypeError, match=r"run_sequentially\(\) expects an iterable of rows, got"):
        rows.collect().run_sequentially({"rows": what})


def test_a_function_without_a_name_is_called_after_its_operator() -> None:
    with pytest.raises(StreamError, match="operator 'stateless' failed at input 0, 1"):
        rows.stateless(lambda row: row).collect().run_sequentially({"rows": [1]})


def test_a_table_whose_columns_would_be_the_rows_is_refused() -> None:
    class Table:  # as those of pandas, Polars and Arrow
        def __iter__(self) -> Iterator[str]:
            return iter(["a column", "another"])

        def __dataframe__(self) -> Any: ...

    with pytest.raises(TypeError, match="got one Table: give it the table's rows, or its batches"):
        rows.collect().run_sequentially({"rows": Table()})


def test_a_tally_is_one() -> None:
    with pytest.raises(GraphError, match="row_counts must be a RowCounts, got 3"):
        rows.collect().run_sequentially({"rows": []}, row_counts=3)


def test_an_entrys_name_is_a_string() -> None:
    with ActorSystem() as system:
        run = system.run(rows.collect())
        with pytest.raises(GraphError, match=r"no entry \['rows'\]: it has 'rows'"):
            run.send(cast(Any, ["rows"]), [1])
        run.finish(timeout=60)


# --- rows without a text --------------------------------------------------------------------------


class Mute:
    """Has no text."""

    def __repr__(self) -> str:
        raise LookupError("no text")


class Muted(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")

    __repr__ = __str__


def refuse(row: object) -> None:
    raise Muted


def test_the_error_of_a_row_without_a_text_has_one() -> None:
    with pytest.raises(StreamError) as raised:
        rows.map(refuse).collect().run_sequentially({"rows": [Mute()]})
    text = "operator 'refuse' failed at input 0, <Mute, whose repr() raised LookupError>"
    assert str(raised.value) == text


def test_a_failure_and_its_dead_letter_have_a_text_without_the_rows() -> None:
    letters: list[DeadLetter] = []
    with ActorSystem() as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(rows.map(refuse, errors="skip").collect())
        run.send("rows", [Mute()])
        assert run.finish(timeout=60) == []
    (letter,) = letters
    assert isinstance(letter.message, FailedRow)
    assert "<Mute, whose repr() raised LookupError>" in repr(letter.message)
    assert "<Muted, whose repr() raised LookupError>" in repr(letter)


def test_an_argument_without_a_text_is_refused_like_any() -> None:
    graph = cast(Any, Graph)
    for operator in (rows.map, rows.key_by, rows.batch, rows.union, rows.to, rows.throttle, graph):
        with pytest.raises(GraphError, match="Mute, whose repr"):
            operator(Mute())


def test_a_row_without_a_text_that_cannot_be_written_says_so() -> None:
    with pytest.raises(TypeError, match=r"Mute, whose repr\(\) raised LookupError> is neither"):
        line_of(Mute())


def iter_of_nothing() -> Iterator[Any]:
    yield from ()


def test_an_accumulator_that_cannot_be_copied_is_refused_where_it_is_given() -> None:
    for operator in (rows.fold, rows.scan, keyed.fold, keyed.scan):
        with pytest.raises(GraphError, match=r"argument is copied for each run, .* cannot be: "):
            operator(iter_of_nothing(), max)
