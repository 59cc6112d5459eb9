"""Joins whose rows a C function compares."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import GraphError, RowCounts, Stream, entry
from callboard.streams.native import NativePredicate
from callboard.testing import ManualSystem
from tests.streams.cutting import run_in_parts

HOWS = ["inner", "left", "right", "outer", "semi", "anti"]
numbers = st.lists(st.integers(0, 30), max_size=20).map(sorted)


def joined(where: Any, **options: Any) -> Stream[Any]:
    return entry("a").join(entry("b"), by=abs, where=where, **options)


@pytest.mark.parametrize(
    "window", [{"within": 4}, {"rows": 3}, {"within": 4, "rule": "three-step"}]
)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("lanes", [1, 3])
def test_it_finds_what_a_function_in_python_finds(
    operators: ModuleType, window: dict[str, Any], how: Any, lanes: int
) -> None:
    native = joined(operators.Near(2), how=how, lanes=lanes, **window).collect()
    python = joined(lambda a, b: abs(a - b) <= 2, how=how, **window).collect()

    @given(numbers, numbers, st.integers(0, 100))
    def check(left: list[int], right: list[int], seed: int) -> None:
        rows = {"a": left, "b": right}
        expected = python.run_sequentially(rows)
        assert native.run_sequentially(rows, batch_size=3) == expected
        with ManualSystem(seed) as system:
            run = system.run(native, batch_size=2)
            for name, some in rows.items():
                run.send(name, some)
            assert run.finish() == expected

    check()


def test_a_large_window_is_compared_without_the_interpreter(operators: ModuleType) -> None:
    rows = {"a": range(0, 4_000, 2), "b": range(1, 4_000, 2)}
    native = joined(operators.Near(3), within=5_000, lanes=2).collect()
    with ActorSystem(workers=2) as system:
        run = system.run(native)
        for name, some in rows.items():
            run.send(name, some)
        found = run.finish(timeout=60)
    expected = joined(lambda a, b: abs(a - b) <= 3, within=3).collect().run_sequentially(rows)
    assert found == expected
    assert len(found) > 7_000


def test_buffers_are_kept_as_long_as_their_rows_are_in_a_window(operators: ModuleType) -> None:
    left = [bytearray(n) for n in (3, 5, 9, 9)]
    right = [bytearray(n) for n in (4, 9, 20)]
    graph = entry("a").join(entry("b"), by=len, within=5, where=operators.Near(1)).collect()
    pairs = graph.run_sequentially({"a": left, "b": right})
    assert [(len(a), len(b)) for a, b in pairs] == [(3, 4), (5, 4), (9, 9), (9, 9)]
    for row in (*left, *right):
        row.append(1)  # BufferError, while somebody refers to its memory


def test_a_row_without_a_native_value_is_an_error_of_its_own(operators: ModuleType) -> None:
    counts = RowCounts()
    stream = entry("a").join(entry("b"), by=int, within=5, where=operators.Near(1), errors="skip")
    rows: dict[str, list[Any]] = {"a": [1, "2", 3], "b": [1, 2]}
    assert stream.collect().run_sequentially(rows, row_counts=counts) == [(1, 1), (1, 2), (3, 2)]
    assert [(failure.row, type(failure.error)) for failure in counts.failures] == [("2", TypeError)]
    stream = entry("a").join(entry("b"), by=int, rows=1, where=operators.Near(9), errors="skip")
    rows = {"a": [1, "2"], "b": [3]}
    assert stream.collect().run_sequentially(rows) == []  # it is the last of its stream


def test_a_native_predicate_without_matches_is_refused() -> None:
    with pytest.raises(GraphError, match="a NativePredicate that overrides matches"):
        joined(NativePredicate(), within=5)


def test_a_description_says_who_compares(operators: ModuleType) -> None:
    said = joined(operators.Near(1), within=5).collect().describe()
    assert "inner, within 5 by abs, each pair compared by Near" in said


def test_a_class_is_refused(operators: ModuleType) -> None:
    with pytest.raises(GraphError, match="where= expects an object that compares, got the class"):
        joined(operators.Near, within=5)


@pytest.mark.parametrize("window", [{"within": 4}, {"rows": 3}])
@pytest.mark.parametrize("lanes", [1, 3])
def test_a_join_goes_on_with_a_snapshot(
    operators: ModuleType, window: dict[str, Any], lanes: int
) -> None:
    graph = joined(operators.Near(2), how="outer", lanes=lanes, **window).collect()

    @given(numbers, numbers, st.integers(0, 40))
    def check(left: list[int], right: list[int], cut: int) -> None:
        rows = sorted([(row, "a") for row in left] + [(row, "b") for row in right])
        inputs = [(name, [row]) for row, name in rows]
        got = run_in_parts(graph, inputs, [cut], ManualSystem, [{}])
        assert got == graph.run_sequentially(inputs)

    check()
