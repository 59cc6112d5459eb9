"""Joins and merges of Arrow batches: the rows, and their order, are those of `join` and `merge`."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import (
    Band,
    Equal,
    Graph,
    GraphError,
    Stream,
    StreamError,
    Tally,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem
from tests.streams.join_model import Row, joined, taken
from tests.streams.test_join import HOWS
from tests.streams.test_merge import streams

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")

NAMES = ("a", "b", "c")
DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2026, 1, 1, 12)


class Clock(NamedTuple):
    """A type of times, what a number is as one, and as a length."""

    type: Any
    time: Callable[[int], Any]
    length: Callable[[int], Any]


CLOCKS = [
    Clock(pa.int64(), int, int),
    Clock(pa.uint8(), lambda n: n + 3, float),
    Clock(pa.float32(), lambda n: n / 4, lambda n: n / 4),
    Clock(pa.timestamp("us"), lambda n: NOON + n * DAY, lambda n: n * DAY),
    Clock(
        pa.timestamp("ms", "Europe/Berlin"),
        lambda n: NOON.replace(tzinfo=datetime.UTC) + n * DAY,
        lambda n: n * DAY,
    ),
    Clock(pa.date32(), lambda n: NOON.date() + n * DAY, lambda n: n * DAY),
    Clock(pa.duration("s"), lambda n: n * DAY, lambda n: n * DAY),
]

WORDS = ["", "x", None, "ß", "long " * 9]


def schema_of(clock: Clock, key: Any = None) -> Any:
    columns = {"stream": pa.int64(), "number": pa.int32(), "time": clock.type}
    columns |= {"value": pa.int16(), "real": pa.float64(), "word": key or pa.string()}
    return pa.schema([*columns.items(), ("maybe", pa.int64())])


def row_of(row: Row, clock: Clock) -> dict[str, Any]:
    """Make a dictionary of a model's row."""
    return {
        "stream": row.stream,
        "number": row.number,
        "time": clock.time(row.time),
        "value": row.value,
        "real": [0.0, -0.0, 0.1, math.inf][row.value],
        "word": WORDS[(row.value + row.number) % 5],
        "maybe": None if row.number % 3 == 0 else row.value,
    }


class Case(NamedTuple):
    """Streams as rows of the model, as dictionaries, and cut into batches, as they arrive."""

    model: list[list[Any]]
    rows: list[tuple[str, list[Any]]]
    batches: list[tuple[str, list[Any]]]


@st.composite
def cases(draw: st.DrawFn, clock: Clock, count: int = 2, key: Any = None) -> Case:
    """Draw streams, how they are cut, and how the pieces arrive among each other."""
    schema = schema_of(clock, key)
    model: list[list[Any]] = draw(streams(count))
    left = [list(stream) for stream in model]
    cut: list[tuple[str, list[Any], list[Any]]] = []
    while any(left):
        at = draw(st.sampled_from([n for n, stream in enumerate(left) if stream]))
        size = draw(st.integers(1, 9))
        if isinstance(left[at][0], Watermark):
            mark = Watermark(clock.time(left[at].pop(0).time))
            cut.append((NAMES[at], [mark], [mark]))
            continue
        rows: list[Any] = []
        while left[at] and isinstance(left[at][0], Row) and len(rows) < size:
            rows.append(row_of(left[at].pop(0), clock))
        cut.append((NAMES[at], rows, [pa.RecordBatch.from_pylist(rows, schema)]))
    if draw(st.booleans()):  # a batch without rows
        cut.insert(0, ("a", [], [pa.RecordBatch.from_pylist([], schema)]))
    return Case(model, [(e, rows) for e, rows, _ in cut], [(e, some) for e, _, some in cut])


def rows_in(batches: list[Any]) -> list[Any]:
    return [row for batch in batches for row in batch.to_pylist()]


def check_sizes(batches: list[Any], n: int) -> None:
    assert all(len(batch) == n for batch in batches[:-1])
    assert all(0 < len(batch) <= n for batch in batches[-1:])


def beside(left: Any, right: Any) -> dict[str, Any]:
    """Put a row of each stream side by side; one of them may be None."""
    lacking = dict.fromkeys(schema_of(CLOCKS[0]).names)
    mine, other = left or lacking, right or lacking
    return {**mine, **{f"{name}_right": value for name, value in other.items()}}


def shown(rows: list[Any], is_pair: bool = True) -> list[Any]:
    """Make rows comparable, with 0.0 and -0.0 apart."""
    if is_pair:
        rows = [row if len(row) > len(schema_of(CLOCKS[0])) else whole_of(row) for row in rows]
    return [{n: str(x) if isinstance(x, float) else x for n, x in row.items()} for row in rows]


def whole_of(row: dict[str, Any]) -> dict[str, Any]:
    """Complete a row of the one stream that has had batches."""
    return beside(None, row) if row["stream"] else beside(row, None)


class Choice(NamedTuple):
    """A predicate for batches, for rows, and for those of the model."""

    where: Any
    of_rows: Any
    of_model: Callable[[Row, Row], object] | None = None


def same(*terms: Any) -> Choice:
    where = terms[0]
    for term in terms[1:]:
        where = where & term
    return Choice(where, where)


def closer(row: dict[str, Any], batch: Any) -> Any:
    return np.abs(batch["value"].to_numpy() - row["value"]) <= 1


CHOICES = [
    Choice(None, None, lambda a, b: True),
    Choice(Equal("value"), Equal("value"), lambda a, b: a.value == b.value),
    Choice(Band("value", 1), Band("value", 1), lambda a, b: abs(a.value - b.value) <= 1),
    same(Band("number", 2.5) & Equal("value")),
    same(Equal("word")),
    same(Equal("word"), Band("value", 2), Equal("maybe"), Band("number", 7)),
    same(Equal("maybe", "value")),
    same(Equal("maybe"), Equal("value", "maybe")),
    same(Equal("real")),
    same(Band("real", 0.1)),
    Choice(closer, lambda a, b: abs(a["value"] - b["value"]) <= 1),
    Choice(
        (
            lambda row, batch: pc.less(row["maybe"], batch["value"]),
            lambda row, batch: pc.less(batch["maybe"], row["value"]),
        ),
        lambda a, b: a["maybe"] is not None and a["maybe"] < b["value"],
    ),
]

options = st.fixed_dictionaries(
    {"how": st.sampled_from(HOWS), "rule": st.sampled_from(["strict", "three-step"])}
)
windows = st.one_of(
    st.builds(lambda n: {"within": n}, st.sampled_from([0, 1, 4, 100])),
    st.builds(lambda n: {"rows": n}, st.sampled_from([1, 2, 50, 10**9])),
)
sizes = st.sampled_from([1, 2, 1_000])


def joins(choice: Choice, clock: Clock, n: int, lag: int, **options: Any) -> tuple[Any, Any]:
    """Make the two joins that are to give the same."""
    a, b = entry("a"), entry("b")
    if "within" in options:
        options["within"] = clock.length(options["within"])
    if lag:
        options["lag"] = clock.length(lag)
    batches = a.join_batches(b, by="time", where=choice.where, n=n, late="side", **options)
    combine = None if options["how"] in ("semi", "anti") else beside
    rows = a.join(b, by="time", where=choice.of_rows, combine=combine, late="side", **options)
    return batches, rows


def both(stream: Stream[Any]) -> Graph[Any]:
    return Graph(stream.collect(name="all"), stream.side("late").collect(name="late"))


@given(st.data(), st.sampled_from(CHOICES), windows, options, sizes, st.sampled_from([0, 2]))
def test_a_join_of_batches_is_that_of_their_rows(
    data: st.DataObject,
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    n: int,
    lag: int,
) -> None:
    clock = data.draw(st.sampled_from(CLOCKS))
    case = data.draw(cases(clock))
    batches, rows = joins(choice, clock, n, lag, **window, **options)
    size = data.draw(st.sampled_from([1, 3, 100]))
    out = both(batches).run_sequentially(case.batches, batch_size=size)
    expected = both(rows).run_sequentially(case.rows)
    check_sizes(out["all"], n)
    is_pair = options["how"] not in ("semi", "anti")
    assert shown(rows_in(out["all"]), is_pair) == shown(expected["all"], is_pair)
    late = [[row for row in rows_in(out["late"]) if row["stream"] == n] for n in range(2)]
    assert late == [[row for row in expected["late"] if row["stream"] == n] for n in range(2)]


@given(st.data(), st.sampled_from(CHOICES[:3]), windows, options, sizes, st.sampled_from([0, 2]))
def test_a_join_of_batches_is_that_of_the_model(
    data: st.DataObject,
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    n: int,
    lag: int,
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    batches, _ = joins(choice, CLOCKS[0], n, lag, **window, **options)
    out = rows_in(both(batches).run_sequentially(case.batches)["all"])
    names = {"within": "within", "rows": "count"}
    renamed = {names[name]: value for name, value in window.items()}
    assert choice.of_model is not None
    order = taken(case.model, lag)
    found = joined(order.rows, where=choice.of_model, **renamed, **options)
    if options["how"] in ("semi", "anti"):
        assert [(row["stream"], row["number"]) for row in out] == [row[:2] for row in found]
    else:
        numbers = [(row["number"], row.get("number_right")) for row in map(dict, out)]
        if out and "number_right" not in out[0]:  # one stream has had no batch: there is one half
            numbers = [
                (row["number"], None) if row["stream"] == 0 else (None, row["number"])
                for row in out
            ]
        assert numbers == [(a and a.number, b and b.number) for a, b in found]


@given(st.data(), st.sampled_from([0, 1, 3]), sizes, st.sampled_from([1, 3, 100]))
def test_a_merge_of_batches_is_that_of_their_rows(
    data: st.DataObject, lag: int, n: int, size: int
) -> None:
    clock = data.draw(st.sampled_from(CLOCKS))
    case = data.draw(cases(clock, 3))
    first, *others = map(entry, NAMES)
    options: dict[str, Any] = {"lag": clock.length(lag)} if lag else {}
    merged = first.merge_batches(*others, by="time", n=n, late="side", **options)
    rows = first.merge(*others, by="time", late="side", **options)
    out = both(merged).run_sequentially(case.batches, batch_size=size)
    expected = both(rows).run_sequentially(case.rows)
    check_sizes(out["all"], n)
    assert rows_in(out["all"]) == expected["all"]
    assert [row["number"] for row in expected["all"]] == [
        row.number for row in taken(case.model, lag).rows
    ]
    assert [[row for row in rows_in(out["late"]) if row["stream"] == n] for n in range(3)] == [
        [row for row in expected["late"] if row["stream"] == n] for n in range(3)
    ]


@given(st.data(), st.sampled_from(CHOICES), windows, options, st.integers(0, 1_000))
def test_a_join_of_batches_under_any_seed_is_that_of_a_sequential_run(
    data: st.DataObject,
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    seed: int,
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    graph = both(joins(choice, CLOCKS[0], 2, 1, **window, **options)[0])
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=2)
        for name, some in case.batches:
            run.send(name, some)
        out = run.finish()
    assert out["all"] == graph.run_sequentially(case.batches)["all"]


@given(st.data(), st.sampled_from(HOWS), st.sampled_from([{"within": 4}, {"rows": 2}]))
def test_the_batches_are_the_same_however_they_arrive(
    data: st.DataObject, how: str, window: dict[str, Any]
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    graph = both(joins(CHOICES[2], CLOCKS[0], 3, 0, how=how, **window)[0])
    left = {name: [some for e, some in case.batches if e == name] for name in NAMES[:2]}
    again = []
    while any(left.values()):
        name = data.draw(st.sampled_from([name for name, some in left.items() if some]))
        again.append((name, left[name].pop(0)))
    out = graph.run_sequentially(again)["all"]
    assert out == graph.run_sequentially(case.batches)["all"]


@pytest.mark.parametrize("threading", ["dynamic", "dedicated", "assigned"])
def test_a_join_of_batches_that_two_threads_send(threading: str) -> None:
    def some(stream: int) -> Iterator[Any]:
        for begin in range(0, 4_000, 100):
            at = np.arange(begin, begin + 100)
            yield pa.record_batch({"time": at // 2, "key": at * (7 + stream) % 50, "n": at})

    graph = entry("a").join_batches(
        entry("b"), by="time", within=20, where=Equal("key"), how="outer", n=500
    )
    inputs = {name: list(some(n)) for n, name in enumerate("ab")}
    with ActorSystem(workers=2) as system:
        run = system.run(graph.collect(), batch_size=3, threading=threading)
        threads = [Thread(target=run.send, args=item) for item in inputs.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        out = run.finish(timeout=60)
    assert out == graph.collect().run_sequentially(inputs)
    assert sum(map(len, out)) > 4_000


@pytest.mark.parametrize(
    "key",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    ids=str,
)
@given(st.data())
def test_strings_of_any_layout_are_keys(key: Any, data: st.DataObject) -> None:
    case = data.draw(cases(CLOCKS[0], key=key))
    batches, rows = joins(CHOICES[4], CLOCKS[0], 2, 0, how="outer", within=4)
    out = rows_in(both(batches).run_sequentially(case.batches)["all"])
    assert shown(out) == shown(both(rows).run_sequentially(case.rows)["all"])


@pytest.mark.parametrize(
    ("values", "arrow"),
    [
        ([True, False, None], pa.bool_()),
        ([b"", b"\0", None], pa.binary()),
        ([datetime.date(2026, 1, 1), None], pa.date32()),
        ([datetime.time(1), datetime.time(2)], pa.time64("us")),
        ([2**63 - 1, -(2**63), 0, None], pa.int64()),
        ([1.5, -0.0, 0.0, math.inf, None], pa.float32()),
        ([Decimal("1.10"), None], pa.decimal128(5, 2)),
        ([15, 25], pa.dictionary(pa.int8(), pa.int64())),
    ],
    ids=str,
)
def test_values_of_many_types_are_equal_as_in_python(values: list[Any], arrow: Any) -> None:
    column = pa.array(values * 3, arrow)
    batch = pa.record_batch({"t": range(len(column)), "k": column})
    rows = batch.to_pylist()
    a, b = entry("a"), entry("b")
    out = a.join_batches(b, by="t", within=5, where=Equal("k")).collect()
    expected = a.join(b, by="t", within=5, where=Equal("k")).collect()
    found = rows_in(out.run_sequentially({"a": [batch], "b": [batch]}))
    wanted = expected.run_sequentially({"a": rows, "b": rows})
    assert [(row["t"], row["t_right"]) for row in found] == [(x["t"], y["t"]) for x, y in wanted]


near = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([0.1, 0.2, 0.30000000000000004, 2.0**53, math.inf, -math.inf, math.nan]),
)
distances = st.sampled_from([0, 0.1, 0.2, 1, 2**53 + 1, 2**64, 10**400])


@given(st.lists(near, max_size=9), st.lists(near, max_size=9), distances)
def test_floats_are_near_as_python_says(left: list[float], right: list[float], d: Any) -> None:
    inputs = {
        name: [pa.record_batch({"t": np.arange(len(some)), "x": pa.array(some, pa.float64())})]
        for name, some in (("a", left), ("b", right))
    }
    graph = entry("a").join_batches(entry("b"), by="t", rows=50, where=Band("x", d)).collect()
    found = {(row["t"], row["t_right"]) for row in rows_in(graph.run_sequentially(inputs))}
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    assert found == {(i, j) for i, j in pairs if abs(left[i] - right[j]) <= d}


whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
long = st.sampled_from([0, 1, 1.5, 2**53 + 1, 2**63 - 1])


@given(st.lists(whole, max_size=9), st.lists(whole, max_size=9), long, long, long)
def test_integers_of_64_bits_are_times_and_values(
    left: list[int], right: list[int], within: Any, d: Any, lag: Any
) -> None:
    inputs = {
        name: [pa.record_batch({"t": pa.array(some, pa.int64())})]
        for name, some in (("a", left), ("b", right))
    }
    rows = {name: batches[0].to_pylist() for name, batches in inputs.items()}
    options: dict[str, Any] = {"by": "t", "within": within, "how": "outer", "where": Band("t", d)}
    a, b = entry("a"), entry("b")
    found = a.join_batches(b, lag=lag, **options).collect().run_sequentially(inputs)
    # In Python, a time before which 1.5 lies may be rounded; 1 is the same, of integers.
    graph = a.join(b, lag=math.floor(lag), combine=lambda x, y: (x, y), **options).collect()
    wanted = [(x and x["t"], y and y["t"]) for x, y in graph.run_sequentially(rows)]
    assert [(row["t"], row.get("t_right")) for row in rows_in(found)] == wanted


def test_events_long_past_are_forgotten_and_so_are_their_keys() -> None:
    def sent(name: str) -> Iterator[Any]:
        for begin in range(0, 20_000, 100):
            at = np.arange(begin, begin + 100)
            keys = [f"key {n}" for n in at]
            yield name, [pa.record_batch({"t": at, "k": keys})]

    arriving = [item for pair in zip(sent("a"), sent("b"), strict=True) for item in pair]
    graph = entry("a").join_batches(entry("b"), by="t", within=50, where=Equal("k")).collect()
    assert sum(map(len, graph.run_sequentially(arriving))) == 20_000


def batch(**columns: Any) -> Any:
    return pa.record_batch(columns)


class TestOutputs:
    def test_names_that_both_streams_have_get_a_suffix(self) -> None:
        a, b = entry("a"), entry("b")
        graph = a.join_batches(b, by=("t", "u"), within=5, suffix=" 2").collect()
        inputs = {"a": [batch(t=[1], k=["x"])], "b": [batch(u=[2], k=["y"])]}
        [out] = graph.run_sequentially(inputs)
        assert out.to_pylist() == [{"t": 1, "k": "x", "u": 2, "k 2": "y"}]

    def test_a_row_waits_for_the_columns_that_it_lacks(self) -> None:
        seen: list[Any] = []
        graph = (
            entry("a").join_batches(entry("b"), by="t", within=1, how="left", n=1).to(seen.append)
        )

        def arriving() -> Iterator[Any]:
            yield "b", [Watermark(50)]
            yield "a", [batch(t=[1, 2, 9])]
            assert not seen
            yield "b", [batch(t=pa.array([], pa.int64()), x=pa.array([], pa.string()))]
            assert rows_in(seen) == [
                {"t": 1, "t_right": None, "x": None},
                {"t": 2, "t_right": None, "x": None},
            ]

        graph.run_sequentially(arriving(), batch_size=1)
        assert len(seen) == 3

    def test_where_a_stream_has_no_columns_the_others_stand_alone(self) -> None:
        graph = entry("a").join_batches(entry("b"), by="t", within=1, how="outer").collect()
        assert rows_in(graph.run_sequentially({"b": [batch(t=[1, 2])]})) == [{"t": 1}, {"t": 2}]

    def test_columns_of_dictionaries_lists_and_structs_come_through(self) -> None:
        def some(begin: int) -> Any:
            at = range(begin, begin + 3)
            words = pa.array([f"w{n}" for n in at]).dictionary_encode()
            return batch(t=at, d=words, many=[[n] * n for n in at], s=[{"n": n} for n in at])

        inputs = {"a": [some(0), some(3)], "b": [some(1), some(4)]}
        joined = entry("a").join_batches(entry("b"), by="t", within=0, how="outer", n=4)
        out = joined.collect().run_sequentially(inputs)
        assert [len(each) for each in out] == [4, 3]
        assert out[0].schema.field("d_right").type == pa.dictionary(pa.int32(), pa.string())
        rows = rows_in(out)
        assert [(r["d"], r["d_right"]) for r in rows[:2]] == [("w0", None), ("w1", "w1")]
        assert rows[3]["many_right"] == [3, 3, 3]
        merged = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(inputs)
        assert [row["s"]["n"] for row in rows_in(merged)] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]

    @pytest.mark.parametrize("n", [1, 4, 1_000])
    @pytest.mark.parametrize("how", ["inner", "outer", "anti"])
    def test_no_output_is_late_behind_a_join(self, how: Any, n: int) -> None:
        joined = entry("a").join_batches(entry("b"), by="t", within=5, how=how, n=n)

        def oldest(some: Any) -> Any:
            times = [some[name] for name in ("t", "t_right") if name in some.schema.names]
            return some.append_column("oldest", pc.min_element_wise(*times)).select(["oldest"])

        behind = joined.map_batches(oldest).merge_batches(
            entry("c"), by="oldest", lag=1_000, late="side"
        )
        rows: list[Any] = [
            ("a", [7]), ("a", Watermark(10)), ("b", Watermark(10)), ("b", [12]),
            ("a", [13]), ("a", Watermark(20)), ("b", Watermark(20)), ("a", [21, 25]),
            ("b", [22, 26, 27]), ("b", Watermark(40)), ("a", Watermark(40)), ("c", [1]),
        ]  # fmt: skip
        names = {"a": "t", "b": "t", "c": "oldest"}
        sent = [(e, [x if isinstance(x, Watermark) else batch(**{names[e]: x})]) for e, x in rows]
        out = both(behind).run_sequentially(sent, batch_size=1)
        assert not out["late"]
        assert out["all"]

    def test_a_watermark_goes_on_when_nothing_before_it_waits(self) -> None:
        seen: list[Any] = []

        class Marks:
            def receive(self, row: Any) -> None:
                pass

            def on_watermark(self, time: Any) -> None:
                seen.append(time)

        merged = entry("a").merge_batches(entry("b"), by="t", n=2)
        steps = [
            ("a", batch(t=pa.array([NOON, NOON + DAY], pa.timestamp("s")))),
            ("b", Watermark(NOON + 5 * DAY)),
            ("a", Watermark(NOON + DAY / 2)),
            ("a", batch(t=pa.array([NOON + 2 * DAY], pa.timestamp("s")))),
            ("a", Watermark(NOON + 3 * DAY)),
        ]
        graph: Graph[Any] = merged.stateful(Marks).collect()
        graph.run_sequentially([(e, [each]) for e, each in steps], batch_size=1)
        assert seen == [NOON + DAY / 2, NOON + 2 * DAY]

    def test_what_is_ready_goes_out_as_soon_as_batches_are_full(self) -> None:
        seen: list[Any] = []
        graph: Graph[Any] = entry("a").merge_batches(entry("b"), by="t", n=2).to(seen.append)

        def arriving() -> Iterator[Any]:
            yield "a", [batch(t=[1, 3, 5])]
            yield "b", [batch(t=[2])]
            assert rows_in(seen) == [{"t": 1}, {"t": 2}]
            yield "b", [Watermark(9)]
            assert rows_in(seen[1:]) == [{"t": 3}, {"t": 5}]

        graph.run_sequentially(arriving(), batch_size=1)
        assert len(seen) == 2

    def test_a_row_goes_before_those_of_an_earlier_batch_that_are_later(self) -> None:
        steps = [
            ("a", batch(t=[5])),
            ("a", batch(t=[3, 7])),
            ("b", batch(t=[4])),
            ("b", Watermark(4)),
        ]
        graph = entry("a").merge_batches(entry("b"), by="t", lag=2, n=1).collect()
        out = graph.run_sequentially([(e, [each]) for e, each in steps], batch_size=1)
        assert rows_in(out) == [{"t": 3}, {"t": 4}, {"t": 5}, {"t": 7}]

    @pytest.mark.parametrize("size", [1, 2])
    def test_branches_that_are_joined_may_be_united_again(self, size: int) -> None:
        some = entry("some")
        pairs = some.join_batches(some.map_batches(lambda each: each), by="t", within=0, n=1)
        graph = pairs.union(some).collect()
        sent = {"some": [batch(t=[1]), Watermark(2), batch(t=[2])]}
        out = graph.run_sequentially(sent, batch_size=size)
        assert rows_in(out) == [{"t": 1}, {"t": 1, "t_right": 1}, {"t": 2}, {"t": 2, "t_right": 2}]

    def test_late_rows_are_counted_one_by_one(self) -> None:
        tally = Tally()
        graph = entry("a").merge_batches(entry("b"), by="t", lag=2).collect()
        out = graph.run_sequentially({"a": [batch(t=[5, 3, 2, 9, 1])]}, tally=tally)
        assert rows_in(out) == [{"t": 3}, {"t": 5}, {"t": 9}]
        assert tally.lates == {"merge_batches": 2}

    def test_a_description_says_how_partners_are_found(self) -> None:
        a, b = entry("a"), entry("b")
        joins = [
            a.join_batches(b, by="t", within=600, where=Equal("k") & Band("x", 1)),
            a.join_batches(b, by=("t", "u"), rows=5, where=Band("x", 1), how="left", n=10),
            a.join_batches(b, by="t", rows=10**6, where=Band("x", 1)),
            a.join_batches(b, by="t", within=1, rule="three-step"),
            a.join_batches(b, by="t", within=1, where=closer),
            a.merge_batches(b, by="t"),
        ]
        said = Graph(*(join.collect(name=f"{n}") for n, join in enumerate(joins))).describe()
        for words in (
            "inner, within 600 by 't', Equal('k') & Band('x', 1), found by cells, batches of 8,192",
            "left, the last 5 rows by 't', 'u', Band('x', 1), each pair compared, batches of 10",
            "the last 1,000,000 rows by 't', Band('x', 1), found by cells",
            "inner, within 1 by 't', three-step, every pair",
            "inner, within 1 by 't', found by masks",
            "by 't', batches of 8,192 rows",
        ):
            assert words in said


BAD: list[tuple[Any, str]] = [
    (5, "stream 2: its rows are record batches of Arrow, not 5"),
    (batch(x=[1]), "stream 2, column 't': there is no such column; the columns are 'x'"),
    (batch(t=[1, None], x=[1, 1]), "stream 2, column 't', row 1: the time is null"),
    (batch(t=["1"], x=[1]), "stream 2, column 't': times are integers, .* not string"),
    (batch(t=[1.5], x=[1]), "stream 2, column 't': it has floats, and others have integers"),
    (batch(t=[1], x=["1"]), "stream 2, column 'x': Band compares numbers and times, not string"),
    (batch(t=[1], x=[1.5]), "stream 2, column 'x': it has floats, and others have integers"),
    (batch(t=[1, 2], x=[1, None]), "stream 2, column 'x', row 1: null is near to nothing"),
    (batch(t=pa.array([2**64 - 1], pa.uint64()), x=[1]), "stream 2, column 't': .*not in range"),
    (
        pa.RecordBatch.from_arrays([pa.array([1])] * 2, names=["t", "t"]),
        "stream 2, column 't': there is 2 columns of that name",
    ),
]


class TestErrors:
    def stream(self, errors: Any = "fail", **options: Any) -> Stream[Any]:
        options = {"within": 10, "where": Band("x", 1), "errors": errors, **options}
        return entry("a").join_batches(entry("b"), by="t", **options)

    @pytest.mark.parametrize(("bad", "said"), BAD, ids=[said for _, said in BAD])
    def test_a_bad_batch_is_an_error_that_says_what_is_wrong(self, bad: Any, said: str) -> None:
        good = batch(t=[1, 2], x=[1, 1])
        sent = [("a", [good]), ("b", [bad]), ("b", [good])]
        with pytest.raises(StreamError, match="'join_batches' failed at input 0") as info:
            self.stream().collect().run_sequentially(sent)
        assert info.value.__cause__ is not None
        assert info.value.row is bad
        with pytest.raises((TypeError, ValueError), match=said):
            raise info.value.__cause__

    @pytest.mark.parametrize(("bad", "said"), BAD, ids=[said for _, said in BAD])
    def test_a_bad_batch_changes_nothing(self, bad: Any, said: str) -> None:
        del said
        good = batch(t=[1, 2], x=[1, 1])
        sent: list[Any] = [("a", [good]), ("b", [bad, good])]
        stream = self.stream("side")
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially(sent)
        assert [failure.row for failure in out["bad"]] == [bad]
        assert rows_in(out["out"]) == [
            {"t": t, "x": 1, "t_right": u, "x_right": 1}
            for t, u in [(1, 1), (2, 1), (1, 2), (2, 2)]
        ]

    def test_the_first_batch_may_be_the_bad_one(self) -> None:
        good = batch(t=pa.array([NOON], pa.timestamp("s")), x=[1])
        for bad in (batch(t=[1], x=[1]), batch(t=good["t"], x=["1"]), batch(t=good["t"], x=[None])):
            tally = Tally()
            stream = self.stream("skip", within=DAY)
            sent = {"a": [Watermark(NOON - DAY), bad, good], "b": [bad, good]}
            out = stream.collect().run_sequentially(sent, tally=tally)
            assert len(rows_in(out)) == 1
            assert tally.skips == {"join_batches": 2}

    def test_columns_that_change_are_an_error(self) -> None:
        sent = {"a": [batch(t=[1], x=[1]), batch(t=[1], x=[1], y=[1])]}
        with pytest.raises(StreamError) as info:
            self.stream().collect().run_sequentially(sent)
        assert str(info.value.__cause__) == (
            "stream 1: its columns are t: int64, x: int64, y: int64, and were t: int64, x: int64"
        )
        merged = entry("a").merge_batches(entry("b"), by="t").collect()
        with pytest.raises(StreamError) as info:
            merged.run_sequentially({"a": [batch(t=[1])], "b": [batch(t=[1], x=[1])]})
        assert str(info.value.__cause__).startswith("stream 2: its columns are t: int64, x: int64")

    def test_what_a_schema_says_besides_makes_no_difference(self) -> None:
        told = pa.schema([pa.field("t", pa.int64(), nullable=False)], metadata={"from": "b"})
        sent = {"a": [batch(t=[1])], "b": [pa.record_batch({"t": [2]}, schema=told)]}
        out = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(sent)
        assert rows_in(out) == [{"t": 1}, {"t": 2}]

    def test_two_columns_of_one_name_are_refused(self) -> None:
        sent = {"a": [batch(t=[1], t_right=[1])], "b": [batch(t=[1])]}
        with pytest.raises(StreamError) as info:
            self.stream(where=None).collect().run_sequentially(sent)
        assert "two columns would be 't_right', of ['t', 't_right'] and of ['t']" in str(
            info.value.__cause__
        )

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_time_that_is_no_point_in_time_is_refused(self, bad: float) -> None:
        with pytest.raises(StreamError) as info:
            self.stream(where=None).collect().run_sequentially({"a": [batch(t=[1.5, bad])]})
        assert "stream 1, column 't', row 1: the time is" in str(info.value.__cause__)

    def test_nan_is_equal_to_nothing(self) -> None:
        sent = {"a": [batch(t=[1, 2], x=[1.5, math.nan])]}
        with pytest.raises(StreamError) as info:
            self.stream(where=Equal("x")).collect().run_sequentially(sent)
        assert "stream 1, column 'x', row 1: NaN is equal to nothing" in str(info.value.__cause__)

    def test_lists_are_no_keys(self) -> None:
        with pytest.raises(StreamError) as info:
            self.stream(where=Equal("x")).collect().run_sequentially({"a": [batch(t=[1], x=[[1]])]})
        assert "Equal compares single values, not list" in str(info.value.__cause__)

    @pytest.mark.parametrize(
        ("options", "times", "said"),
        [
            ({"within": 5}, [NOON], "within is a timedelta, as times are timestamp.us., not 5"),
            ({"within": DAY}, [1], "within is a number, as values are integers, not datetime"),
            ({"within": 2**63}, [1], "within is at most 2..63 - 1 of integers, not 92233"),
            ({"within": 5, "lag": 2**64}, [1], "lag is at most 2..63 - 1 of integers, not 1844"),
            ({"where": Band("t", DAY)}, [1], "a band's distance is a number"),
        ],
    )
    def test_lengths_are_those_of_times(
        self, options: dict[str, Any], times: list[Any], said: str
    ) -> None:
        stream = self.stream(**{"where": None, **options})
        with pytest.raises(StreamError) as info:
            stream.collect().run_sequentially({"a": [batch(t=times)]})
        with pytest.raises((TypeError, ValueError), match=said):
            raise info.value.__cause__ or info.value

    @pytest.mark.parametrize("first", [True, False])
    def test_a_watermark_is_a_time_as_rows_have(self, first: bool) -> None:
        both = [batch(t=pa.array([NOON], pa.timestamp("s"))), Watermark(5)]
        graph = self.stream(where=None, within=DAY).collect()
        with pytest.raises(StreamError) as info:
            graph.run_sequentially({"a": both[::-1] if first else both})
        assert "a watermark is a time as rows have, which are timestamp[s], not 5" in str(
            info.value.__cause__
        )

    @pytest.mark.parametrize(
        "mark", [math.inf, Decimal("inf"), 2**70, 1e300, -math.inf, -(2**70), 5, 5.5, np.int64(5)]
    )
    def test_a_watermark_of_any_number_is_one_of_integers(self, mark: Any) -> None:
        rows = {name: [{"t": 5}, Watermark(mark), {"t": 5}] for name in "ab"}
        sent = {
            name: [x if isinstance(x, Watermark) else batch(t=[5]) for x in some]
            for name, some in rows.items()
        }
        found = self.stream(where=None, how="outer").collect().run_sequentially(sent, batch_size=1)
        graph = entry("a").join(entry("b"), by="t", within=10, how="outer", combine=lambda x, y: 0)
        assert len(rows_in(found)) == len(graph.collect().run_sequentially(rows, batch_size=1))

    @pytest.mark.parametrize(
        "answer",
        [
            lambda row, batch: [True] * len(batch),
            lambda row, batch: True,
            lambda row, batch: np.ones(len(batch) + 1, bool),
            lambda row, batch: np.ones(len(batch), int),
            lambda row, batch: pa.array([1] * len(batch)),
            lambda row, batch: np.ones((len(batch), 1), bool),
            lambda row, batch: None,
        ],
    )
    def test_a_mask_is_a_boolean_array_of_the_batch_s_length(self, answer: Any) -> None:
        graph = self.stream(where=answer).collect()
        with pytest.raises(StreamError, match="failed at input 0") as info:
            graph.run_sequentially({"a": [batch(t=[1])], "b": [batch(t=[2], x=[7])]})
        assert info.value.row.to_pylist() == [{"t": 2, "x": 7}]
        assert (
            "where= answers a boolean array of NumPy or Arrow, with a value for each of 1"
            in str(info.value.__cause__)
        )

    @pytest.mark.parametrize("size", [1, 2, 100])
    @pytest.mark.parametrize("how", HOWS)
    def test_a_row_at_which_a_mask_raises_gives_nothing_and_is_not_kept(
        self, how: Any, size: int
    ) -> None:
        def mask(row: dict[str, Any], batch: Any) -> Any:
            if row["x"] == 0:
                raise ZeroDivisionError
            return np.ones(len(batch), bool)

        rows = {
            "a": [{"t": t, "x": x} for t, x in [(1, 1), (2, 0), (4, 4), (20, 2)]],
            "b": [{"t": t, "x": x} for t, x in [(1, 1), (2, 2), (3, 0), (4, 0), (5, 1), (50, 1)]],
        }
        sent = {
            name: [
                pa.RecordBatch.from_pylist(some[begin : begin + size])
                for begin in range(0, len(some), size)
            ]
            for name, some in rows.items()
        }
        stream = self.stream("side", where=mask, how=how, n=2)
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially(sent)
        failed = [failure.row.to_pylist()[0] for failure in out["bad"]]
        assert failed == [{"t": 2, "x": 0}, {"t": 3, "x": 0}, {"t": 4, "x": 0}]
        kept = {name: [row for row in some if row["x"]] for name, some in rows.items()}
        alone = entry("a").join(entry("b"), by="t", within=10, how=how).collect()
        wanted = alone.run_sequentially(kept)
        if how not in ("semi", "anti"):
            wanted = [(x and x["t"], y and y["t"]) for x, y in wanted]
            assert [(row["t"], row["t_right"]) for row in rows_in(out["out"])] == wanted
        else:
            assert rows_in(out["out"]) == wanted

    def test_what_was_found_before_a_failure_has_gone_out_in_full_batches(self) -> None:
        def mask(row: dict[str, Any], batch: Any) -> Any:
            return np.full(len(batch), 1 // (5 - row["t"]) >= 0)

        seen: list[Any] = []
        graph = self.stream(where=mask, n=2).to(seen.append)
        with pytest.raises(StreamError):
            graph.run_sequentially({"a": [batch(t=[1, 2, 3])], "b": [batch(t=[4, 5, 6])]})
        assert rows_in(seen) == [{"t": 1, "t_right": 4}, {"t": 2, "t_right": 4}]

    def test_a_type_that_arrow_cannot_gather_is_refused_at_once(self) -> None:
        words = pa.array(["x"], pa.string_view())
        with pytest.raises(StreamError) as info:
            self.stream(where=None).collect().run_sequentially({"a": [batch(t=[1], w=words)]})
        assert "string_view" in str(info.value.__cause__)


def test_bad_arguments_are_refused() -> None:
    a, b = entry("a"), entry("b")
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "one of them, not within=None and rows=None"),
        ({"within": 1, "rows": 1}, "one of them, not within=1 and rows=1"),
        ({"within": -1}, "within is a length, 0 or more, not -1"),
        ({"rows": 0}, "rows"),
        ({"within": 1, "n": 0}, "n is"),
        ({"within": 1, "how": "full"}, "how is one of inner, .*not 'full'"),
        ({"within": 1, "rule": "loose"}, "rule is one of strict, three-step, not 'loose'"),
        ({"within": 1, "late": "include"}, "late is one of drop, side, not 'include'"),
        ({"within": 1, "lag": -1}, "lag is a length of time, or none, not -1"),
        ({"within": 1, "suffix": 1}, "suffix is a string, not 1"),
        ({"within": 1, "where": 5}, "where is a function, not 5"),
        ({"within": 1, "where": (closer,)}, "a function, or one for each of 2 streams, not"),
        ({"within": 1, "where": Equal(1)}, "compares columns by their names, not 1"),
        ({"within": 1, "where": Equal("x", len)}, "compares columns by their names, not len"),
        ({"within": 1, "by": 1}, r"by= of join_batches\(\) is a string"),
        ({"within": 1, "by": ("x",)}, "a tuple with one for each of 2, not"),
    ]
    for options, said in bad:
        with pytest.raises(GraphError, match=said):
            a.join_batches(b, **{"by": "t", **options})
    where = Equal("x") & Equal("x") & Equal("x") & Equal("x")
    with pytest.raises(GraphError, match="compares up to 7 columns, not 8"):
        a.join_batches(b, by="t", within=1, where=where & where)
    with pytest.raises(GraphError, match=r"join_batches\(\) takes streams, not \[1\]"):
        a.join_batches([1], by="t", within=1)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"merge_batches\(\) takes one stream or more"):
        a.merge_batches(by="t")
