"""Joins and merges of Arrow batches: the rows, and their order, are those of `join` and `merge`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Equal, entry
from callboard.testing import ManualSystem
from tests.streams.batch_cases import (
    CHOICES,
    CLOCKS,
    NAMES,
    Choice,
    both,
    cases,
    check_sizes,
    joins,
    options,
    rows_in,
    shown,
    sizes,
    windows,
)
from tests.streams.join_cases import HOWS
from tests.streams.join_model import joined, taken
from tests.waiting import in_threads

pa = pytest.importorskip("pyarrow")


@given(st.data(), st.sampled_from(CHOICES), windows, options, sizes, st.sampled_from([0, 2]))
def test_a_join_of_batches_is_that_of_their_rows(
    data: st.DataObject,
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    n: int,
    delay_threshold: int,
) -> None:
    clock = data.draw(st.sampled_from(CLOCKS))
    case = data.draw(cases(clock))
    batches, rows = joins(choice, clock, n, delay_threshold, case.schemas, **window, **options)
    size = data.draw(st.sampled_from([1, 3, 100]))
    out = both(batches).run_sequentially(case.batches, batch_size=size)
    expected = both(rows).run_sequentially(case.rows)
    check_sizes(out["all"], n)
    assert shown(rows_in(out["all"])) == shown(expected["all"])
    late = [[row for row in rows_in(out["late"]) if row["stream"] == n] for n in range(2)]
    assert late == [[row for row in expected["late"] if row["stream"] == n] for n in range(2)]


@given(st.data(), st.sampled_from(CHOICES[:3]), windows, options, sizes, st.sampled_from([0, 2]))
def test_a_join_of_batches_is_that_of_the_model(
    data: st.DataObject,
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    n: int,
    delay_threshold: int,
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    batches, _ = joins(choice, CLOCKS[0], n, delay_threshold, case.schemas, **window, **options)
    out = rows_in(both(batches).run_sequentially(case.batches)["all"])
    names = {"within": "within", "rows": "count"}
    renamed = {names[name]: value for name, value in window.items()}
    assert choice.of_model is not None
    options.pop("lanes")
    order = taken(case.model, delay_threshold)
    found = joined(order.rows, where=choice.of_model, **renamed, **options)
    if options["how"] in ("semi", "anti"):
        assert [(row["stream"], row["number"]) for row in out] == [row[:2] for row in found]
    else:
        numbers = [(row["number"], row["number_right"]) for row in out]
        assert numbers == [(a and a.number, b and b.number) for a, b in found]


@given(st.data(), st.sampled_from([0, 1, 3]), sizes, st.sampled_from([1, 3, 100]))
def test_a_merge_is_that_of_their_rows(
    data: st.DataObject, delay_threshold: int, n: int, size: int
) -> None:
    clock = data.draw(st.sampled_from(CLOCKS))
    case = data.draw(cases(clock, 3))
    first, *others = map(entry, NAMES)
    options: dict[str, Any] = (
        {"delay_threshold": clock.length(delay_threshold)} if delay_threshold else {}
    )
    merged = first.merge_batches(*others, by="time", n=n, late="side", **options)
    rows = first.merge(*others, by="time", late="side", **options)
    out = both(merged).run_sequentially(case.batches, batch_size=size)
    expected = both(rows).run_sequentially(case.rows)
    check_sizes(out["all"], n)
    assert rows_in(out["all"]) == expected["all"]
    assert [row["number"] for row in expected["all"]] == [
        row.number for row in taken(case.model, delay_threshold).rows
    ]
    assert [[row for row in rows_in(out["late"]) if row["stream"] == n] for n in range(3)] == [
        [row for row in expected["late"] if row["stream"] == n] for n in range(3)
    ]


@given(st.data(), st.sampled_from(CHOICES), windows, options, st.integers(0, 1_000))
def test_a_join_of_batches_under_any_seed_is_that_of_a_sequential_run(
    data: st.DataObject, choice: Choice, window: dict[str, Any], options: dict[str, Any], seed: int
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    graph = both(joins(choice, CLOCKS[0], 2, 1, case.schemas, **window, **options)[0])
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
    graph = both(joins(CHOICES[2], CLOCKS[0], 3, 0, case.schemas, how=how, **window)[0])
    left = {name: [some for e, some in case.batches if e == name] for name in NAMES[:2]}
    again = []
    while any(left.values()):
        name = data.draw(st.sampled_from([name for name, some in left.items() if some]))
        again.append((name, left[name].pop(0)))
    out = graph.run_sequentially(again)["all"]
    assert out == graph.run_sequentially(case.batches)["all"]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("threading", ["dynamic", "dedicated", "assigned"])
def test_a_join_of_batches_that_two_threads_send(threading: str, lanes: int) -> None:
    def some(stream: int) -> Iterator[Any]:
        for begin in range(0, 4_000, 100):
            at = np.arange(begin, begin + 100)
            yield pa.record_batch({"time": at // 2, "key": at * (7 + stream) % 50, "n": at})

    graph = entry("a").join_batches(
        entry("b"), by="time", within=20, where=Equal("key"), how="outer", n=500, lanes=lanes
    )
    inputs = {name: list(some(n)) for n, name in enumerate("ab")}
    with ActorSystem(workers=2) as system:
        run = system.run(graph.collect(), batch_size=3, threading=threading)
        in_threads(lambda each: run.send(*each), inputs.items())
        out = run.finish(timeout=60)
    assert out == graph.collect().run_sequentially(inputs)
    assert sum(map(len, out)) > 4_000
