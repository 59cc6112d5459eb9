"""Joins with the row that is nearest in time: as in pandas and Polars, however rows arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Band, Equal, FailedRow, Graph, GraphError, RowCounts, Watermark, entry
from callboard.testing import ManualSystem

NEAREST: list[Any] = ["before", "after", "either"]
Row = tuple[int, str, int]  # time, key, number

a, b = entry("a"), entry("b")


def time_of(row: Row) -> int:
    return row[0]


def partner(row: Row, others: list[Row], nearest: str, tolerance: Any, by_key: bool) -> Row | None:
    """Look through all rows of the other stream."""
    good = [each for each in others if not by_key or each[1] == row[1]]
    if tolerance is not None:
        good = [each for each in good if abs(each[0] - row[0]) <= tolerance]
    before = [each for each in good if each[0] <= row[0]]
    after = [each for each in good if each[0] >= row[0]]
    earlier = max(before, key=lambda each: (each[0], others.index(each)), default=None)
    later = min(after, key=lambda each: (each[0], others.index(each)), default=None)
    if nearest == "before" or later is None:
        return earlier if nearest != "after" else None
    if nearest == "after" or earlier is None:
        return later
    return earlier if row[0] - earlier[0] <= later[0] - row[0] else later


def numbered(pairs: list[tuple[int, str]]) -> list[Row]:
    return [(time, key, number) for number, (time, key) in enumerate(sorted(pairs))]


sides = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("xy")), max_size=14).map(numbered)
tolerances = st.sampled_from([None, 0, 1, 3])


@st.composite
def arrivals(draw: st.DrawFn, left: list[Row], right: list[Row]) -> list[tuple[str, list[Any]]]:
    """Draw how rows arrive among each other, and watermarks between them."""
    streams: dict[str, list[Any]] = {"a": list(left), "b": list(right)}
    pieces: list[tuple[str, list[Any]]] = []
    while any(streams.values()):
        name = draw(st.sampled_from([name for name, rows in streams.items() if rows]))
        size = draw(st.integers(1, 4))
        piece, streams[name] = streams[name][:size], streams[name][size:]
        if draw(st.booleans()) and streams[name]:
            piece.append(Watermark(streams[name][0][0]))
        pieces.append((name, piece))
    return pieces


@settings(max_examples=300, deadline=None)
@given(
    data=st.data(),
    left=sides,
    right=sides,
    nearest=st.sampled_from(NEAREST),
    tolerance=tolerances,
    by_key=st.booleans(),
)
def test_partners_are_those_that_a_look_at_all_rows_finds(
    data: st.DataObject,
    left: list[Row],
    right: list[Row],
    nearest: Any,
    tolerance: Any,
    by_key: bool,
) -> None:
    joined = a.join_asof(
        b, by=time_of, where=Equal(1) if by_key else None, nearest=nearest, tolerance=tolerance
    )
    pieces = data.draw(arrivals(left, right))
    expected = [(row, partner(row, right, nearest, tolerance, by_key)) for row in left]
    size = data.draw(st.sampled_from([1, 2, 256]))
    assert joined.collect().run_sequentially(pieces, batch_size=size) == expected
    with ManualSystem(data.draw(st.integers(0, 2**32))) as system:
        run = system.run(joined.collect(), batch_size=size)
        for name, rows in pieces:
            run.send(name, rows)
        assert run.finish() == expected


# --- other libraries ----------------------------------------------------------------------------


def frames(left: list[Row], right: list[Row], make: Any) -> Iterator[Any]:
    for name, rows in (("left", left), ("right", right)):
        columns = {"time": [r[0] for r in rows], "key": [r[1] for r in rows]}
        yield make(columns | {name: [row[2] for row in rows]})


def numbers(pairs: list[tuple[Row, Row | None]]) -> list[tuple[int, int | None]]:
    return [(row[2], None if other is None else other[2]) for row, other in pairs]


def run(left: list[Row], right: list[Row], **options: Any) -> list[Any]:
    graph = a.join_asof(b, by=time_of, **options).collect()
    return graph.run_sequentially({"a": left, "b": right})


some = sides.filter(bool)


@settings(max_examples=60, deadline=None)
@given(some, some, st.sampled_from(NEAREST), tolerances, st.booleans())
def test_partners_are_those_of_pandas(
    left: list[Row], right: list[Row], nearest: Any, tolerance: Any, by_key: bool
) -> None:
    pd = pytest.importorskip("pandas")
    lefts, rights = frames(left, right, pd.DataFrame)
    direction = {"before": "backward", "after": "forward", "either": "nearest"}[nearest]
    found = pd.merge_asof(
        lefts,
        rights if by_key else rights.drop(columns="key"),
        on="time",
        by="key" if by_key else None,
        direction=direction,
        tolerance=tolerance,
    )
    wanted = [
        (row.left, None if math.isnan(row.right) else int(row.right)) for row in found.itertuples()
    ]
    where = Equal(1) if by_key else None
    assert numbers(run(left, right, where=where, nearest=nearest, tolerance=tolerance)) == wanted


@settings(max_examples=60, deadline=None)
@given(some, some, st.sampled_from(["before", "after"]), tolerances, st.booleans())
def test_partners_are_those_of_polars(
    left: list[Row], right: list[Row], nearest: Any, tolerance: Any, by_key: bool
) -> None:
    pl = pytest.importorskip("polars")
    if nearest == "after":  # of equal times Polars may take another one than pandas
        right = numbered([*{row[:2]: None for row in right}])
        if not by_key:
            right = numbered([*{row[0]: row[:2] for row in right}.values()])
    lefts, rights = frames(left, right, pl.DataFrame)
    found = lefts.join_asof(
        rights if by_key else rights.drop("key"),
        on="time",
        by="key" if by_key else None,
        strategy={"before": "backward", "after": "forward"}[nearest],
        tolerance=tolerance,
        check_sortedness=False,
    )
    wanted = list(zip(found["left"], found["right"], strict=True))
    where = Equal(1) if by_key else None
    assert numbers(run(left, right, where=where, nearest=nearest, tolerance=tolerance)) == wanted


# --- time ---------------------------------------------------------------------------------------


def test_moments_are_compared_whatever_their_zones() -> None:
    begin = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    paris = ZoneInfo("Europe/Paris")  # where it is 02:30 twice
    lefts = [(begin + n * timedelta(hours=1)).astimezone(paris) for n in range(3)]
    rights = [begin, begin + timedelta(minutes=50)]
    for tolerance, wanted in ((None, rights[1]), (timedelta(minutes=20), None)):
        graph = a.join_asof(b, by=lambda time: time, tolerance=tolerance).collect()
        found = graph.run_sequentially({"a": lefts, "b": rights})
        assert [other for _, other in found] == [rights[0], rights[1], wanted]


def test_a_row_is_given_as_soon_as_no_better_partner_can_come(manual: ManualSystem) -> None:
    graph = a.join_asof(b, by=time_of, nearest="either", tolerance=5).collect()
    work = manual.run(graph)
    outputs = work.results()

    def after(name: str, *rows: Any) -> list[Any]:
        work.send(name, rows)
        manual.run_until_idle()
        return outputs.take()

    first, second = (10, "x", 0), (11, "x", 1)
    assert after("b", (7, "x", 0)) == []
    assert after("a", first) == []
    assert after("b", Watermark(12)) == []
    assert after("a", second) == []
    assert after("b", Watermark(13)) == []
    assert after("a", Watermark(13)) == [(first, (7, "x", 0))]
    assert after("b", (14, "x", 1)) == []
    assert after("a", Watermark(14)) == [(second, (14, "x", 1))]
    assert after("a", last := (15, "x", 2)) == []
    assert after("a", Watermark(99)) == []
    assert after("b", Watermark(99)) == [(last, (14, "x", 1))]
    work.finish()


def test_watermarks_stay_behind_rows_that_wait() -> None:
    seen: list[Any] = []

    class See:
        def receive(self, row: Any) -> list[Any]:
            seen.append(row[0][0])
            return []

        def on_watermark(self, time: Any) -> list[Any]:
            seen.append(Watermark(time))
            return []

    joined = a.join_asof(b, by=time_of, nearest="after", tolerance=5).stateful(See)
    rows: list[tuple[str, list[Any]]] = [
        ("a", [(10, "x", 0), Watermark(20)]),
        ("b", [Watermark(12)]),
        ("b", [Watermark(16)]),
    ]
    joined.collect().run_sequentially(rows)
    assert seen == [Watermark(10), 10, Watermark(16)]


def test_rows_that_can_no_longer_match_are_dropped() -> None:
    alive: set[int] = set()

    class Value:
        def __init__(self, time: int) -> None:
            self.time, self.key = time, time
            alive.add(time)

        def __del__(self) -> None:
            alive.discard(self.time)

    most = 0

    def count(_: Any) -> None:
        nonlocal most
        most = max(most, len(alive))

    for nearest in NEAREST:
        graph = a.join_asof(b, by="time", where=Equal("key"), nearest=nearest, tolerance=10).to(
            count
        )
        graph.run_sequentially((name, [Value(time)]) for time in range(2_000) for name in "ab")
        assert 0 < most < 200, nearest


# --- errors -------------------------------------------------------------------------------------


def test_none_is_a_key_and_nan_is_an_error_of_its_row() -> None:
    joined = a.join_asof(b, by=0, where=Equal(1), errors="side")
    graph = Graph(joined.collect(name="out"), joined.failures.collect(name="failed"))
    lefts: list[Any] = [(1, None), (2, math.nan), (3, [])]
    rights: list[Any] = [(0, None), (1, math.nan)]
    found: Any = graph.run_sequentially({"a": lefts, "b": rights})
    assert found["out"] == [((1, None), (0, None))]
    failures: list[FailedRow] = found["failed"]
    assert [(failure.serial, type(failure.error)) for failure in failures] == [
        (1, ValueError),
        (1, ValueError),
        (2, TypeError),
    ]


def test_an_error_of_combine_is_that_of_its_row() -> None:
    def ratio(one: Any, other: Any) -> float:
        return float(one[1] / other[1])

    counts = RowCounts()
    graph = a.join_asof(b, by=0, nearest="after", combine=ratio, errors="skip").collect()
    rows = {"a": [(1, 6), (4, 4), (9, 1)], "b": [(2, 3), (5, 0)]}
    assert graph.run_sequentially(rows, row_counts=counts) == [2.0]
    assert [failure.serial for failure in counts.failures] == [1, 2]


def test_late_rows_go_to_the_side() -> None:
    joined = a.join_asof(b, by=0, late="side")
    graph = Graph(joined.collect(name="out"), joined.side("late").collect(name="late"))
    found: Any = graph.run_sequentially({"a": [(5,), (3,)], "b": [(4,), (1,)]})
    assert found == {"out": [((5,), (4,))], "late": [(3,), (1,)]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nearest": "backward"}, "nearest must be one of before, after, either"),
        ({"tolerance": -1}, "tolerance: expected a length of 0 or more, got -1"),
        (
            {"where": Band(0, 1)},
            r"where= of join_asof\(\) must be one Equal, or several joined by &, got Band",
        ),
        ({"where": lambda one, other: True}, r"where= of join_asof\(\) must be one Equal"),
        ({"late": "include"}, "late must be one of"),
    ],
)
def test_arguments_are_checked(options: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        a.join_asof(b, by=0, **options)


def test_branches_meet_again_behind_it() -> None:
    rows = entry("rows")
    joined = rows.join_asof(rows.filter(lambda row: row[1] != "x"), by=time_of)
    both = joined.union(rows).collect()
    given_rows = [(1, "x", 0), (2, "y", 1), (3, "x", 2)]
    wanted = both.run_sequentially({"rows": given_rows}, batch_size=1)
    assert both.run_sequentially({"rows": given_rows}) == wanted
    with ActorSystem(workers=2) as system:
        work = system.run(both)
        work.send("rows", given_rows)
        assert work.finish(timeout=60) == wanted
