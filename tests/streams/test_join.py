"""Joins of two streams: the same outputs in the same order, however their rows arrive."""

from __future__ import annotations

import datetime
import gc
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import (
    Band,
    Equal,
    Graph,
    GraphError,
    Predicate,
    Stream,
    StreamError,
    Tally,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem
from tests.streams.join_model import Row, joined, taken
from tests.streams.test_idle import Marks
from tests.streams.test_merge import arrivals, streams, time_of

HOWS = ["inner", "left", "right", "outer", "semi", "anti"]


@dataclass(frozen=True)
class Choice:
    """A predicate as a user writes it, and what it says of two rows."""

    where: Any
    says: Callable[[Row, Row], object]


CHOICES = [
    Choice(None, lambda left, right: True),
    Choice(Equal("value"), lambda left, right: left.value == right.value),
    Choice(Band("value", 1), lambda left, right: abs(left.value - right.value) <= 1),
    Choice(Equal(3) & Band("number", 2), lambda a, b: a[3] == b[3] and abs(a[1] - b[1]) <= 2),
    Choice(lambda left, right: left.value < right.value, lambda a, b: a.value < b.value),
]

options = st.fixed_dictionaries(
    {
        "how": st.sampled_from(HOWS),
        "rule": st.sampled_from(["strict", "three-step"]),
        "lanes": st.sampled_from([1, 1, 2, 5]),
    }
)
windows = st.one_of(
    st.builds(lambda n: {"within": n}, st.sampled_from([0, 1, 4, 100])),
    st.builds(lambda n: {"rows": n}, st.sampled_from([1, 2, 50])),
)


def joining(choice: Choice, **options: Any) -> Stream[Any]:
    return entry("a").join(entry("b"), by=time_of, where=choice.where, **options)


def expected(rows: list[Row], choice: Choice, window: dict[str, Any], **options: Any) -> list[Any]:
    names = {"within": "within", "rows": "count"}
    renamed = {names[name]: value for name, value in window.items()}
    options.pop("lanes", None)
    return joined(rows, where=choice.says, **renamed, **options)


@given(
    st.data(), streams(2), st.sampled_from(CHOICES), windows, options, st.sampled_from([1, 3, 100])
)
def test_a_join_is_that_of_the_model_however_rows_arrive(
    data: st.DataObject,
    rows: list[list[Any]],
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    size: int,
) -> None:
    lag = data.draw(st.sampled_from([0, 2]))
    stream = joining(choice, **window, **options, lag=lag, late="side")
    graph = Graph(stream.collect(name="all"), stream.side("late").collect(name="late"))
    out = graph.run_sequentially(data.draw(arrivals(rows)), batch_size=size)
    order = taken(rows, lag)
    assert out["all"] == expected(order.rows, choice, window, **options)
    assert sorted(out["late"]) == sorted(order.late[0] + order.late[1])


@given(st.data(), streams(2), st.sampled_from(CHOICES), windows, options, st.integers(0, 1_000))
def test_a_join_under_any_seed_is_that_of_a_sequential_run(
    data: st.DataObject,
    rows: list[list[Any]],
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    seed: int,
) -> None:
    arriving = data.draw(arrivals(rows))
    graph = joining(choice, **window, **options).collect()
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=2)
        for name, some in arriving:
            run.send(name, some)
        assert run.finish() == graph.run_sequentially(arriving)


def fragile(left: Row, right: Row) -> bool:
    """Raises at some pairs."""
    return 6 // (left.value * right.value - 2) > left.number - right.number


FRAGILE = [
    fragile,
    Equal("value") & Band("number", 2, lambda row: row.number if row.value else None),
    Band("value", 1, lambda row: row.value if row.number % 5 else [].pop()),
    None,
]


@given(
    st.data(), streams(2), st.sampled_from([fragile, None]), windows, options,
    st.sampled_from([1, 3, 100]),
)  # fmt: skip
def test_a_row_at_which_a_function_raises_is_nobody_s_partner(
    data: st.DataObject,
    rows: list[list[Any]],
    where: Any,
    window: dict[str, Any],
    options: dict[str, Any],
    size: int,
) -> None:
    combine = None if options["how"] in ("semi", "anti") else combined
    join = entry("a").join(
        entry("b"), by=time_of, where=where, combine=combine, late="side", errors="side",
        **window, **options,
    )  # fmt: skip
    graph = Graph(
        join.collect(name="out"),
        join.side("late").collect(name="late"),
        join.failures.map(lambda failure: failure.row).collect(name="failed"),
    )
    out = graph.run_sequentially(data.draw(arrivals(rows)), batch_size=size)
    failed: list[Row] = []
    choice = Choice(where, where or (lambda left, right: True))
    extra = {} if combine is None else {"combine": combine}
    model = expected(taken(rows).rows, choice, window, failed=failed, **options, **extra)
    assert out["out"] == model
    assert out["failed"] == failed


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_row_that_failed_is_not_the_partner_that_is_enough(lanes: int) -> None:
    def where(left: Any, right: Any) -> bool:
        if (left, right) == (1, 2):
            raise ValueError
        return True

    join = entry("a").join(
        entry("b"), by=int, within=9, where=where, how="semi", errors="skip", lanes=lanes
    )
    assert join.collect().run_sequentially({"a": [1, 4], "b": [2, 3, 20]}) == [1, 4]


def combined(left: Row | None, right: Row | None) -> Any:
    """Raises for some pairs, and for some rows without a partner."""
    some = left or right
    assert some is not None
    return left, right, 1 // (some.value + some.number % 3)


@given(
    st.data(), streams(2), st.sampled_from(FRAGILE), windows, options, st.integers(0, 1_000),
    st.sampled_from(["side", "fail"]),
)  # fmt: skip
def test_lanes_give_what_one_gives_also_errors(
    data: st.DataObject,
    rows: list[list[Any]],
    where: Any,
    window: dict[str, Any],
    options: dict[str, Any],
    seed: int,
    errors: Any,
) -> None:
    combine = None if options["how"] in ("semi", "anti") else combined
    lanes = data.draw(st.sampled_from([1, 2, 5]))

    def graph(lanes: int) -> Graph[Any]:
        join = entry("a").join(
            entry("b"), by=time_of, where=where, combine=combine, late="side", errors=errors,
            **window, **{**options, "lanes": lanes},
        )  # fmt: skip
        out = [join.stateful(Marks), join.side("late")]
        if errors == "side":
            out.append(join.failures.map(lambda failure: (failure.serial, failure.row)))
        return Graph(*(stream.collect(name=f"{n}") for n, stream in enumerate(out)))

    arriving = data.draw(arrivals(rows))
    size = data.draw(st.sampled_from([1, 100]))
    expected = outcome(lambda: graph(1).run_sequentially(arriving, batch_size=size))
    assert outcome(lambda: graph(lanes).run_sequentially(arriving, batch_size=3)) == expected
    with ManualSystem(seed) as system:
        run = system.run(graph(lanes), batch_size=2)

        def result() -> Any:
            for name, some in arriving:
                run.send(name, some)
            return run.finish()

        assert outcome(result) == expected


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StreamError as error:
        return error.operator, error.serial, error.row, repr(error.__cause__)


# What a band may meet: numbers that 64 bits and floats have, and some that they have not.
numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-3, 3).map(float),
    st.sampled_from(
        [0.1, 0.30000000000000004, -0.0, 2**53, 2**53 + 1, float(2**53), 2**63, -(2**63)]
    ),
    st.sampled_from([math.inf, -math.inf, math.nan, True, 10**400]),
)
near_times = st.sampled_from([0, 1, 1.0, 2, 2.5, 2**52 + 1, 2**53 + 1, 2**62 + 1, 10**30])


@given(
    st.lists(st.tuples(near_times, numbers), max_size=12),
    st.lists(st.tuples(near_times, numbers), max_size=12),
    st.sampled_from([0, 1, 0.2, 0.5, 2**53 + 1, 2**64]),
    st.one_of(
        st.builds(lambda n: {"within": n}, st.sampled_from([0, 1, 1.5, 2**52, 2**63])),
        st.builds(lambda n: {"rows": n}, st.sampled_from([1, 3])),
    ),
    options,
    st.sampled_from([1, 4, 100]),
)
def test_numbers_are_near_as_python_says(
    left: list[Any],
    right: list[Any],
    distance: Any,
    window: dict[str, Any],
    options: dict[str, Any],
    size: int,
) -> None:
    rows = [
        [
            Row(n, at, time, value)
            for at, (time, value) in enumerate(sorted(some, key=lambda r: r[0]))
        ]
        for n, some in enumerate((left, right))
    ]
    where = Band("value", distance)
    stream = entry("a").join(
        entry("b"), by=time_of, where=where, errors="skip", **window, **options
    )
    tally = Tally()
    inputs = {"a": rows[0], "b": rows[1]}
    out = stream.collect().run_sequentially(inputs, batch_size=size, tally=tally)
    failed = [failure.row for failure in tally.failures]

    def near(a: Row, b: Row) -> bool:
        return bool(abs(a.value - b.value) <= distance)

    failures: list[Row] = []
    order = taken(rows).rows
    model = expected(order, Choice(where, near), window, failed=failures, **options)
    assert repr(out) == repr(model)
    assert repr(failed) == repr(failures)
    for row in failed:  # by an error that Python raises as well
        with pytest.raises(OverflowError):
            [near(row, other) for other in rows[1 - row.stream]]


def test_a_value_that_is_no_number_any_more_changes_nothing() -> None:
    from decimal import Decimal

    values: list[Any] = [1, 5, Decimal(2), 6.5, 3]
    rows = [[Row(n, at, at, value) for at, value in enumerate(values)] for n in range(2)]
    where = Band("value", 1)
    graph = entry("a").join(entry("b"), by=time_of, within=10, where=where, errors="skip").collect()
    tally = Tally()
    out = graph.run_sequentially({"a": rows[0], "b": rows[1]}, batch_size=1, tally=tally)
    failed = {failure.row for failure in tally.failures}
    order = taken([[row for row in some if row not in failed] for some in rows])
    assert out == joined(order.rows, within=10, where=lambda a, b: abs(a.value - b.value) <= 1)
    assert {row.number for row in failed} == {3}  # Python cannot subtract a float and a Decimal


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("threading", ["dynamic", "dedicated", "assigned"])
def test_a_join_of_streams_that_two_threads_send(threading: str, lanes: int) -> None:
    from threading import Thread

    rows = [[Row(n, at, at // 2, at % 7) for at in range(2_000)] for n in range(2)]
    graph = joining(CHOICES[1], within=5, how="outer", lanes=lanes).collect()
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=32, threading=threading)
        threads = [
            Thread(target=run.send, args=(name, some))
            for name, some in zip("ab", rows, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        out = run.finish(timeout=60)
    assert out == graph.run_sequentially({"b": rows[1], "a": rows[0]})
    assert len(out) > 2_000


def test_branches_that_are_joined_may_be_united_again() -> None:
    rows = entry("rows")
    pairs = rows.join(rows.map(lambda n: n), by=int, within=0, combine=lambda a, b: ("pair", a, b))
    graph = pairs.union(rows).collect()
    expected = [("pair", 1, 1), 1, ("pair", 2, 2), 2]
    for size in (1, 2):
        out = graph.run_sequentially({"rows": [1, 2]}, batch_size=size)
        assert sorted(map(str, out)) == sorted(map(str, expected))
    assert graph.run_sequentially({"rows": [1, 2]}, batch_size=1) == graph.run_sequentially(
        {"rows": [1, 2]}, batch_size=100
    )


def test_rows_without_partners_leave_as_soon_as_time_has_passed_their_window() -> None:
    seen: list[Any] = []
    graph = entry("a").join(entry("b"), by=int, within=5, how="left").to(seen.append)
    steps: list[tuple[str, Any, list[Any]]] = [
        ("a", 1, []),
        ("a", 2, []),
        ("b", Watermark(7), []),  # a row of 2 may come, and what it gives goes first
        ("a", 7, [(1, None)]),
        ("a", Watermark(20), []),
        ("b", Watermark(9), [(2, None)]),
        ("b", 10, [(7, 10)]),
    ]

    def arriving() -> Any:
        for name, row, gives in steps:
            before = len(seen)
            yield name, [row]
            assert seen[before:] == gives, row

    graph.run_sequentially(arriving(), batch_size=1)


@pytest.mark.parametrize("how", ["inner", "left", "anti", "semi"])
@pytest.mark.parametrize(
    "window", [{"within": 5}, {"rows": 3}, {"within": 5, "rule": "three-step"}]
)
def test_no_output_is_late_behind_a_join(how: Any, window: dict[str, Any]) -> None:
    def oldest(row: Any) -> Any:
        both = row if isinstance(row, tuple) else (row,)
        return min(each for each in both if each is not None)

    joined = entry("a").join(entry("b"), by=int, how=how, **window)
    # With such a lag, only what a watermark has ruled out is late.
    after = joined.map(oldest).merge(entry("c"), by=int, lag=1_000, late="side")
    graph = Graph(after.collect(name="out"), after.side("late").collect(name="late"))
    rows: list[tuple[str, list[Any]]] = [
        ("a", [7]), ("a", [Watermark(10)]), ("b", [Watermark(10)]),
        ("b", [12]), ("a", [13, Watermark(20)]), ("b", [Watermark(20)]), ("c", [1]),
        ("a", [21, 25]), ("b", [22, 26, 27, Watermark(40)]), ("a", [Watermark(40)]),
    ]  # fmt: skip
    out = graph.run_sequentially(rows, batch_size=1)
    assert not out["late"]
    assert out["out"]


def test_the_paper_s_rule_compares_with_what_its_own_stream_left_in_a_window() -> None:
    # Figure 1 of Gulisano et al. 2015: a window of 4, and two rows that are 5 apart.
    inputs = {"a": [1, 4], "b": [2, 6]}
    pairs = {
        rule: entry("a").join(entry("b"), by=int, within=4, rule=rule).collect()
        for rule in ("strict", "three-step")
    }
    assert pairs["strict"].run_sequentially(inputs) == [(1, 2), (4, 2), (4, 6)]
    assert pairs["three-step"].run_sequentially(inputs) == [(1, 2), (4, 2), (1, 6), (4, 6)]


@pytest.mark.parametrize(
    ("where", "compared"),
    [
        (lambda left, right: True, 499_500),
        (Equal(lambda row: row % 3), 166_500),
        (Band(lambda row: row % 3, 0), 166_500),
    ],
)
def test_lanes_share_the_comparisons_alike(where: Any, compared: int) -> None:
    join = entry("a").join(entry("b"), by=int, within=1_000, where=where, lanes=4)
    with ManualSystem() as system:
        run = system.run(join.to(lambda pair: None))
        run.send("a", range(0, 1_000, 2))
        run.send("b", range(1, 1_001, 2))
        run.send("a", [1_000])
        system.run_until_idle()
        (lanes,) = {each.lanes for each in run.statistics().operators if each.lanes}
        run.finish()
    assert len(lanes) == 4
    assert sum(lanes) == pytest.approx(compared / 2, rel=0.01)
    assert max(lanes) <= 1.01 * min(lanes)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("where", [None, Equal("time"), Band("time", 1)])
def test_a_run_that_is_over_keeps_no_rows(where: Any, lanes: int) -> None:
    class Timed:
        def __init__(self, time: int) -> None:
            self.time = time

    rows = [Timed(at) for at in range(9)]
    join = entry("a").join(entry("b"), by="time", within=100, where=where, lanes=lanes)
    with ManualSystem() as system:
        run = system.run(join.to(lambda pair: None))
        run.send("a", rows)
        run.send("b", rows)
        run.finish()
        kept = ref(rows[0])
        del rows
        gc.collect()
        assert kept() is None


@pytest.mark.parametrize(
    "window", [{"within": 3}, {"rows": 2}, {"within": 3, "rule": "three-step"}]
)
@pytest.mark.parametrize("where", [None, Equal(0), Band(0, 1)])
def test_a_stream_with_a_join_can_be_pickled(where: Any, window: dict[str, Any]) -> None:
    join = entry("a").join(entry("b"), by=0, where=where, **window).collect()
    again = pickle.loads(pickle.dumps(join))
    rows = {"a": [(1,), (3,), (4,)], "b": [(1,), (2,), (7,)]}
    assert again.run_sequentially(rows) == join.run_sequentially(rows)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("window", [{"rows": 1}, {"within": 1, "rule": "three-step"}])
def test_a_row_that_cannot_be_compared_pushes_others_out(
    window: dict[str, Any], lanes: int
) -> None:
    join = entry("a").join(
        entry("b"), by=0, where=Equal(1), how="left", errors="skip", lanes=lanes, **window
    )
    rows: dict[str, Any] = {"a": [(1, "k"), (3, ["unhashable"])], "b": [(4, "k")]}
    assert join.collect().run_sequentially(rows) == [((1, "k"), None)]


def test_times_may_be_datetimes() -> None:
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    hours = [{"at": start + datetime.timedelta(hours=n), "n": n} for n in range(4)]
    graph = entry("a").join(entry("b"), by="at", within=datetime.timedelta(hours=1))
    out = graph.map(lambda pair: (pair[0]["n"], pair[1]["n"])).collect()
    assert out.run_sequentially({"a": hours, "b": hours[::2]}) == [
        (0, 0), (1, 0), (1, 2), (2, 2), (3, 2),
    ]  # fmt: skip


def test_columns_may_have_another_name_on_the_other_side() -> None:
    left = [SimpleNamespace(ts=1, key="k", x=5)]
    right = [("k", 2, 7), ("k", 3, 99), ("other", 4, 5)]
    where = Equal("key", 0) & Band("x", 2, lambda row: row[2])
    graph = entry("a").join(entry("b"), by=("ts", 1), within=10, where=where).collect()
    rows: dict[str, list[Any]] = {"a": left, "b": right}
    assert graph.run_sequentially(rows) == [(left[0], right[0])]
    assert repr(where) == "Equal('key', 0) & Band('x', <lambda>, 2)"


def test_a_description_says_how_partners_are_found() -> None:
    a, b = entry("a"), entry("b")
    joins = [
        a.join(b, by="t", within=600, where=Equal("k") & Band("x", 1), name="one"),
        a.join(b, by=("t", "u"), rows=1_000, where=lambda x, y: x == y, how="left", name="two"),
        a.join(b, by="t", within=1, rule="three-step", lanes=2, name="three"),
        a.join(b, by="t", within=1, where=Band("x", 2), name="four"),
        a.join(b, by="t", rows=5, where=Band("x", 2), name="five"),
        a.join(b, by="t", within=2**60, where=Band("x", 2), name="six"),
    ]
    said = Graph(*(join.collect(name=f"{n}") for n, join in enumerate(joins))).describe()
    assert "inner, within 600 by 't', Equal('k') & Band('x', 1), found by 'k'" in said
    assert "left, the last 1,000 rows by 't', 'u', each pair compared" in said
    assert "by 't', three-step, every pair, 2 lanes, of a, b, in each lane one worker" in said
    assert "inner, within 1 by 't', Band('x', 2), numbers found by cells" in said
    assert "inner, the last 5 rows by 't', Band('x', 2), numbers found by cells" in said
    assert "inner, within 1152921504606846976 by 't', Band('x', 2), each pair compared" in said


ROWS = {"a": [(1, 1), (2, 0), (3, 4)], "b": [(1, 1), (2, 2), (4, 0), (5, 1)]}


class TestErrors:
    def stream(self, errors: Any, **options: Any) -> Stream[Any]:
        return entry("a").join(
            entry("b"),
            by=0,
            within=10,
            where=lambda a, b: a[1] / b[1] > 0,
            errors=errors,
            **options,
        )

    def test_a_predicate_that_raises_fails_the_run_after_what_was_before(self) -> None:
        seen: list[Any] = []
        with pytest.raises(StreamError) as info:
            self.stream("fail").to(seen.append).run_sequentially(ROWS)
        error = info.value
        assert (error.operator, error.serial, error.row) == ("join", 2, (4, 0))
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert seen == [((1, 1), (1, 1)), ((1, 1), (2, 2)), ((3, 4), (1, 1)), ((3, 4), (2, 2))]

    @pytest.mark.parametrize("size", [1, 2, 100])
    def test_a_row_at_which_it_raises_gives_nothing_and_is_not_kept(self, size: int) -> None:
        stream = self.stream("side", how="outer")
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially(ROWS, batch_size=size)
        assert [(failure.serial, failure.row) for failure in out["bad"]] == [(2, (4, 0))]
        assert out["out"] == [
            ((1, 1), (1, 1)), ((1, 1), (2, 2)), ((3, 4), (1, 1)), ((3, 4), (2, 2)),
            ((1, 1), (5, 1)), ((3, 4), (5, 1)), ((2, 0), None),
        ]  # fmt: skip

    def test_what_combines_may_raise_for_a_row_without_a_partner(self) -> None:
        stream = entry("a").join(
            entry("b"), by=0, within=1, how="left", combine=lambda a, b: a[0] + b[0], errors="skip"
        )
        tally = Tally()
        out = stream.collect().run_sequentially({"a": [(1,), (9,)], "b": [(2,)]}, tally=tally)
        assert out == [3]
        assert [failure.row for failure in tally.failures] == [(9,)]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, None, "x", datetime.datetime.min])
    def test_a_time_without_a_difference_is_an_error_of_its_row(self, bad: Any) -> None:
        graph = entry("a").join(entry("b"), by=0, within=5, errors="skip").collect()
        tally = Tally()
        rows = {"a": [(1,), (bad,), (2,)], "b": [(1,)]}
        assert graph.run_sequentially(rows, tally=tally) == [((1,), (1,)), ((2,), (1,))]
        assert [failure.row for failure in tally.failures] == [(bad,)]

    def test_a_time_of_another_sort_than_within_is_an_error_of_its_row(self) -> None:
        graph = entry("a").join(entry("b"), by=0, within=5).collect()
        with pytest.raises(StreamError, match="failed at input 0"):
            graph.run_sequentially({"a": [(datetime.datetime.min,)]})

    def test_a_key_that_is_nan_is_an_error_of_its_row(self) -> None:
        stream = entry("a").join(entry("b"), by=0, within=5, where=Equal(1), errors="skip")
        tally = Tally()
        rows = {"a": [(1, math.nan), (1, None)], "b": [(1, math.nan), (1, None)]}
        assert stream.collect().run_sequentially(rows, tally=tally) == [((1, None), (1, None))]
        assert len(tally.failures) == 2

    def test_nan_in_one_of_two_keys_is_an_error_of_its_row(self) -> None:
        where = Equal(1) & Equal(2)
        stream = entry("a").join(entry("b"), by=0, within=5, where=where, errors="skip")
        tally = Tally()
        rows = {"a": [(1, math.nan, 1), (1, 2, 1)], "b": [(1, math.nan, 1), (1, 2, 1)]}
        pairs = stream.collect().run_sequentially(rows, tally=tally)
        assert pairs == [((1, 2, 1), (1, 2, 1))]
        assert len(tally.failures) == 2

    def test_a_key_that_cannot_be_compared_is_an_error_of_its_row(self) -> None:
        class Key:
            def __hash__(self) -> int:
                return 1

            def __eq__(self, other: object) -> bool:
                raise RuntimeError("never the same")

            def __ne__(self, other: object) -> bool:
                return self is not other

        rows: dict[str, list[Any]] = {"a": [(1, Key()), (2, Key()), (3, 5)], "b": [(3, 5)]}
        stream = entry("a").join(entry("b"), by=0, within=5, where=Equal(1), errors="skip")
        tally = Tally()
        out = stream.collect().run_sequentially(rows, tally=tally)
        assert out == [((3, 5), (3, 5))]
        assert [failure.row for failure in tally.failures] == [rows["a"][1]]

    @pytest.mark.parametrize("size", [1, 100])
    def test_times_without_a_difference_from_each_other_are_errors_of_rows(self, size: int) -> None:
        from decimal import Decimal

        rows: list[Any] = [("a", [(1,)]), ("b", [(1,)])]
        rows += [("a", [(Decimal(7),)]), ("b", [(7,), (13.5,)])]
        stream = entry("a").join(entry("b"), by=0, within=5, errors="skip")
        tally = Tally()
        rows.append(("a", [(14,)]))
        out = stream.collect().run_sequentially(rows, batch_size=size, tally=tally)
        assert out == [((1,), (1,)), ((Decimal(7),), (7,))]
        assert [failure.row for failure in tally.failures] == [(13.5,)]

    def test_times_that_turn_out_to_have_no_order_end_the_run_with_its_error(self) -> None:
        graph = entry("a").merge(entry("b"), by=0, errors="skip").collect()
        times = [("a", (0, 0)), ("b", (0, 0)), ("a", (1, "x")), ("b", (1, 2)), ("a", (3, 0))]
        with pytest.raises(StreamError, match="operator 'merge' failed") as info:
            graph.run_sequentially([(name, [(time,)]) for name, time in times], batch_size=1)
        assert isinstance(info.value.__cause__, TypeError)

    def test_a_watermark_of_infinity_lets_all_rows_go(self) -> None:
        from decimal import Decimal

        seen: list[Any] = []
        graph = entry("a").join(entry("b"), by=0, within=Decimal(5), how="left").to(seen.append)

        def arriving() -> Any:
            yield "a", [(Decimal(1),), Watermark(math.inf)]
            yield "b", [(Decimal(9),), Watermark(math.inf)]
            assert seen == [((Decimal(1),), None)]

        graph.run_sequentially(arriving())

    def test_nan_is_near_to_nothing(self) -> None:
        stream = entry("a").join(entry("b"), by=0, within=5, where=Band(1, 10), how="left")
        rows = {"a": [(1, math.nan), (1, 3)], "b": [(1, math.nan), (1, 4)]}
        assert stream.collect().run_sequentially(rows) == [
            ((1, 3), (1, 4)),
            (rows["a"][0], None),
        ]

    def test_a_column_that_is_missing_names_the_row(self) -> None:
        graph = entry("a").join(entry("b"), by="t", within=5, where=Equal("k")).collect()
        with pytest.raises(StreamError, match=r"'join' failed at input 0, \{'t': 1\}") as info:
            graph.run_sequentially({"a": [{"t": 1}]})
        assert isinstance(info.value.__cause__, KeyError)


def test_bad_arguments_are_refused() -> None:
    a, b = entry("a"), entry("b")
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "one of them, not within=None and rows=None"),
        ({"within": 1, "rows": 1}, "one of them, not within=1 and rows=1"),
        ({"within": -1}, "within is a length, 0 or more, not -1"),
        ({"within": math.nan}, "within is a length, 0 or more, not nan"),
        ({"within": math.inf}, "within is a length, 0 or more, not inf"),
        ({"within": "5"}, "within is a length, 0 or more, not '5'"),
        ({"within": True}, "within is a length, 0 or more, not True"),
        ({"rows": 0}, "rows"),
        ({"within": 1, "how": "full"}, "how is one of inner, .*not 'full'"),
        ({"within": 1, "rule": "loose"}, "rule is one of strict, three-step, not 'loose'"),
        ({"within": 1, "late": "include"}, "late is one of drop, side, not 'include'"),
        ({"within": 1, "where": 5}, "where is a function, not 5"),
        ({"within": 1, "combine": 5}, "combine is a function, not 5"),
        ({"within": 1, "how": "semi", "combine": max}, "how='semi' gives rows of the left stream"),
    ]
    for options, said in bad:
        with pytest.raises(GraphError, match=said):
            a.join(b, by="t", **options)
    with pytest.raises(GraphError, match=r"join\(\) takes streams, not \[1\]"):
        a.join([1], by="t", within=1)  # type: ignore[call-overload]
    with pytest.raises(GraphError, match="a band's distance is a length, 0 or more, not -2"):
        Band("x", -2)
    with pytest.raises(GraphError, match="Equal takes a name, a place or a function of a row"):
        Equal(2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Equal("x") & (lambda left, right: True)  # type: ignore[operator]
    assert isinstance(Equal("x") & Band("y", 1), Predicate)
