"""Unions and zips: the order in which rows of several streams follow each other."""

from __future__ import annotations

from heapq import merge
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.messages import DeadLetter
from callboard.streams import Graph, GraphError, RowCounts, Stream, Watermark, entry
from callboard.testing import ManualSystem

times = st.lists(st.integers(0, 20), max_size=15).map(sorted)


def tag(name: str) -> Any:
    return lambda row: (name, row)


def test_the_arguments_say_which_branch_comes_first() -> None:
    rows = entry("rows")
    left, right = rows.map(tag("left")), rows.map(tag("right"))
    graph = right.union(left).collect()
    assert graph.run_sequentially({"rows": [1]}) == [("right", 1), ("left", 1)]


def test_a_stream_may_be_united_with_itself() -> None:
    rows = entry("rows")
    assert rows.union(rows).collect().run_sequentially({"rows": [1, 2]}) == [1, 1, 2, 2]


def test_rows_for_several_entries_come_as_they_arrive() -> None:
    graph = entry("a").union(entry("b")).collect()
    arriving = [("b", [1, 2]), ("a", [3]), ("b", [4])]
    assert graph.run_sequentially(arriving) == [1, 2, 3, 4]


@given(times, times, times)
def test_streams_ordered_by_time_merge_into_one(a: list[int], b: list[int], c: list[int]) -> None:
    names = ["a", "b", "c"]
    streams: list[Stream[Any]] = [entry(name).map(tag(name)) for name in names]
    graph = streams[0].union(*streams[1:], by=lambda row: row[1]).collect()
    rows = [[(n, t) for t in times] for n, times in zip(names, (a, b, c), strict=True)]
    expected = list(merge(*rows, key=lambda row: row[1]))
    for size in (1, 4):
        inputs = {"c": c, "a": a, "b": b}
        assert graph.run_sequentially(inputs, batch_size=size) == expected


def test_a_row_of_a_merged_stream_waits_until_the_others_have_come_to_its_time() -> None:
    seen: list[Any] = []
    clock: list[int] = []
    a, b = entry("a"), entry("b")

    def look(row: int) -> int:
        clock.append(len(seen))
        return row

    graph = a.union(b.map(look), by=int).to(seen.append)
    graph.run_sequentially([("a", [1, 5]), ("b", [3, 4]), ("b", [6])])
    assert clock == [0, 0, 3]  # what had come out when b's rows came in
    assert seen == [1, 3, 4, 5, 6]


def test_a_watermark_lets_waiting_rows_of_a_merged_stream_go() -> None:
    seen: list[Any] = []
    graph = entry("a").union(entry("b"), by=int).to(seen.append)
    late = [("a", [1, 5]), ("b", [Watermark(3)])]

    def arriving() -> Any:
        yield from late
        assert seen == [1]
        yield "b", [4]

    graph.run_sequentially(arriving(), batch_size=1)
    assert seen == [1, 4, 5]


@given(st.lists(st.integers(), max_size=20), st.lists(st.integers(), max_size=20))
def test_zip_is_that_of_python(a: list[int], b: list[int]) -> None:
    graph = entry("a").zip(entry("b")).collect()
    zipped = graph.run_sequentially([("b", b), ("a", a)], batch_size=3)
    assert zipped == list(zip(a, b, strict=False))


def test_event_time_after_a_union_is_that_of_its_slowest_stream() -> None:
    class Times:
        def receive(self, row: Any) -> list[int] | None: ...

        def on_watermark(self, time: int) -> list[int]:
            return [time]

    graph = entry("a").union(entry("b")).stateful(Times).collect()
    marks = [("a", 5), ("b", 3), ("b", 4), ("a", 9), ("b", 20), ("a", 7)]
    assert graph.run_sequentially([(n, [Watermark(t)]) for n, t in marks]) == [3, 4, 9]


@pytest.mark.parametrize("join", ["union", "zip"])
def test_only_streams_are_joined(join: str) -> None:
    with pytest.raises(GraphError, match=rf"{join}\(\) expects streams, got \[1\]"):
        getattr(entry("a"), join)([1])
    with pytest.raises(GraphError, match=rf"{join}\(\) expects at least one stream"):
        getattr(entry("a"), join)()


class Doubles:
    def receive_many(self, rows: list[int]) -> list[int]:
        return [2 * row for row in rows]


def test_many_rows_at_once_are_no_problem_beside_a_union() -> None:
    rows = entry("rows")
    positive = rows.map(abs)
    graph = Graph(
        rows.union(positive).collect(name="all"),
        positive.stateless(Doubles).union(entry("more")).collect(name="doubled"),
    )
    for size in (1, 4):
        arriving = [("rows", [-1, 2]), ("more", [0]), ("rows", [3])]
        assert graph.run_sequentially(arriving, batch_size=size) == {
            "all": [-1, 1, 2, 2, 3, 3],
            "doubled": [2, 4, 0, 6],
        }


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_rows_that_a_zip_has_no_partners_for_are_counted(batch_size: int) -> None:
    counts = RowCounts(kept=0)
    graph = entry("a").zip(entry("b"), entry("c"), name="triples").collect()
    inputs = {"a": range(10), "b": range(7), "c": range(4)}
    zipped = graph.run_sequentially(inputs, batch_size=batch_size, row_counts=counts)
    assert zipped == [(n, n, n) for n in range(4)]
    assert counts.unpaireds == {"triples": 6 + 3}


@pytest.mark.parametrize("kind", [ActorSystem, ManualSystem])
def test_rows_that_a_zip_has_no_partners_for_are_dead_letters(kind: Any) -> None:
    letters: list[DeadLetter] = []
    with kind() as system:
        system.dead_letters.subscribe(letters.append)
        source = entry("x", int)
        graph = source.zip(source.filter(lambda n: n % 2 == 0).map(str)).collect()
        run = system.run(graph, batch_size=2)
        run.send("x", range(5))
        assert run.finish(timeout=60) == [(0, "0"), (1, "2"), (2, "4")]
        assert run.statistics().unpaired == 2
        assert system.dead_letters.reasons["unpaired"] == 2
    assert [letter.message for letter in letters if letter.reason == "unpaired"] == [3, 4]


def test_a_zip_that_comes_out_even_counts_nothing() -> None:
    counts = RowCounts()
    source = entry("x", int)
    source.zip(source.map(str)).collect().run_sequentially({"x": range(5)}, row_counts=counts)
    assert not counts.unpaireds
