"""Joins in lanes, and rows that fail while others look for partners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import Band, Equal, Graph, StreamError, entry
from callboard.testing import ManualSystem
from tests.streams.join_cases import Choice, expected, options, windows
from tests.streams.join_model import Row, taken
from tests.streams.test_idle import Marks
from tests.streams.test_merge import arrivals, streams, time_of


def fragile(left: Row, right: Row) -> bool:
    """Raises at some pairs."""
    return 6 // (left.value * right.value - 2) > left.number - right.number


FRAGILE = [
    fragile,
    Equal("value") & Band("number", 2, lambda row: row.number if row.value else None),
    Band("value", 1, lambda row: row.value if row.number % 5 else [].pop()),
    None,
]


def combined(left: Row | None, right: Row | None) -> Any:
    """Raises for some pairs, and for some rows without a partner."""
    some = left or right
    assert some is not None
    return left, right, 1 // (some.value + some.number % 3)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StreamError as error:
        return error.operator, error.serial, error.row, repr(error.__cause__)


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


def shares(join: Any, sent: Any, lanes: int) -> list[int]:
    """Return how many pairs each lane has compared, and check that they are about as many."""
    with ManualSystem() as system:
        run = system.run(join.to(lambda pair: None))
        for name, rows in sent:
            run.send(name, rows)
        system.run_until_idle()
        (compared,) = {each.lanes for each in run.statistics().operators if each.lanes}
        run.finish()
    assert len(compared) == lanes
    assert max(compared) <= 1.01 * min(compared)
    return list(compared)


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
    sent = [("a", range(0, 1_000, 2)), ("b", range(1, 1_001, 2)), ("a", [1_000])]
    assert sum(shares(join, sent, lanes=4)) == pytest.approx(compared / 2, rel=0.01)


@pytest.mark.parametrize("where", [lambda left, right: True, Band(lambda row: row % 3, 2)])
def test_lanes_share_alike_what_comes_in_a_pattern(where: Any) -> None:
    # One count for both streams would make every third row, all of "b", one lane's to store.
    join = entry("a").join(entry("b"), by=int, within=100, where=where, lanes=3)
    sent = [("a", [row for row in range(3_000) if row % 3]), ("b", range(0, 3_000, 3))]
    shares(join, sent, lanes=3)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("window", [{"rows": 1}, {"within": 1, "rule": "three-step"}])
def test_an_incomparable_row_pushes_others_out(window: dict[str, Any], lanes: int) -> None:
    join = entry("a").join(
        entry("b"), by=0, where=Equal(1), how="left", errors="skip", lanes=lanes, **window
    )
    rows: dict[str, Any] = {"a": [(1, "k"), (3, ["unhashable"])], "b": [(4, "k")]}
    assert join.collect().run_sequentially(rows) == [((1, "k"), None)]
