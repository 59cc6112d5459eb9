"""Joins of Arrow batches in lanes give what one lane gives, also where functions raise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import Band, Equal, Graph, entry
from callboard.testing import ManualSystem
from tests.streams.batch_cases import CHOICES, CLOCKS, batch, cases, options, windows
from tests.streams.test_idle import Marks
from tests.streams.test_join_lanes import outcome, shares

pa = pytest.importorskip("pyarrow")


def fragile(row: dict[str, Any], others: Any) -> Any:
    """Raises at some rows, and at all that are compared with some of these."""
    if row["number"] % 7 == 3 or 24 in others["number"].to_pylist():
        raise ValueError(row["number"])
    if row["number"] % 5 == 1 and 3 in others["number"].to_pylist():
        raise ZeroDivisionError
    return np.abs(others["value"].to_numpy() - row["value"]) <= 1


PREDICATES = [fragile, fragile, *[choice.where for choice in CHOICES]]


@given(
    st.data(), st.sampled_from(PREDICATES), windows, options, st.integers(0, 1_000),
    st.sampled_from(["side", "fail", "skip"]), st.sampled_from([1, 3, 1_000]),
)  # fmt: skip
def test_lanes_give_what_one_gives_also_errors(
    data: st.DataObject,
    where: Any,
    window: dict[str, Any],
    options: dict[str, Any],
    seed: int,
    errors: Any,
    n: int,
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    lanes = data.draw(st.sampled_from([2, 5]))

    def graph(lanes: int) -> Graph[Any]:
        join = entry("a").join_batches(
            entry("b"), by="time", where=where, late="side", errors=errors, n=n,
            schemas=case.schemas, **window, **{**options, "lanes": lanes},
        )  # fmt: skip
        out = [join.stateful(Marks), join.side("late")]
        if errors == "side":
            out.append(join.failures.map(lambda failure: (failure.serial, failure.row)))
        return Graph(*(stream.collect(name=f"{n}") for n, stream in enumerate(out)))

    size = data.draw(st.sampled_from([1, 100]))
    expected = outcome(lambda: graph(1).run_sequentially(case.batches, batch_size=size))
    assert outcome(lambda: graph(lanes).run_sequentially(case.batches, batch_size=3)) == expected
    with ManualSystem(seed) as system:
        run = system.run(graph(lanes), batch_size=2)

        def result() -> Any:
            for name, some in case.batches:
                run.send(name, some)
            return run.finish()

        assert outcome(result) == expected


@pytest.mark.parametrize(
    ("where", "compared"),
    [
        (None, 499_500),
        (Band("time", 2_000), 499_500),
        (Equal("key"), 166_500),
        (lambda row, others: np.ones(len(others), bool), 499_500),
    ],
    ids=["all", "band", "equal", "function"],
)
def test_lanes_share_the_comparisons_alike(where: Any, compared: int) -> None:
    join = entry("a").join_batches(entry("b"), by="time", within=1_000, where=where, lanes=4)
    even, odd = np.arange(0, 1_000, 2), np.arange(1, 1_001, 2)
    sent = [
        ("a", [batch(time=even, key=even % 3)]),
        ("b", [batch(time=odd, key=odd % 3)]),
        ("a", [batch(time=[1_000], key=[5])]),
    ]
    assert sum(shares(join, sent, lanes=4)) == pytest.approx(compared / 2, rel=0.01)


@pytest.mark.parametrize("lanes", [1, 3])
def test_words_that_no_row_has_any_more_are_forgotten(lanes: int) -> None:
    count, size = 20_000, 500

    def some(stream: int) -> list[Any]:
        return [
            batch(time=times, key=[f"{time // 4}" for time in times], stream=[stream] * size)
            for times in (np.arange(begin, begin + size) for begin in range(0, count, size))
        ]

    join = entry("a").join_batches(
        entry("b"), by="time", within=8, where=Equal("key"), how="outer", lanes=lanes
    )
    left, right = some(0), some(1)
    mixed = [each for pair in zip(left, right, strict=True) for each in pair]
    sent = [("a" if at % 2 == 0 else "b", [each]) for at, each in enumerate(mixed)]
    out = join.collect().run_sequentially(sent, batch_size=1)
    assert sum(map(len, out)) == 4 * count


def test_describe_says_how_many_lanes_there_are() -> None:
    join = entry("a").join_batches(entry("b"), by="t", within=1, where=Equal("x"), lanes=2)
    said = join.collect().describe()
    words = "Equal('x'), found by buckets, 2 lanes, batches of 8,192 rows, of a, b, in each lane"
    assert words in said
