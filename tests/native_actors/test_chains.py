"""Native operators that need no order, one behind the other: one stage, and the same answers."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Graph, StreamError, entry

ROWS = list(range(500))

# What follows what: native ones that need no order, and what comes between chains.
STEPS = st.lists(
    st.sampled_from(["add", "add", "even", "copies", "fails", "map", "total", "keyed", "split"]),
    max_size=40,
)


def chain(stream: Any, steps: list[str], operators: ModuleType, fails_at: int) -> Graph[Any]:
    sides = []
    for step in steps:
        match step:
            case "add":
                stream = stream.native(operators.AddOne)
            case "even":
                stream = stream.native(operators.Even)
            case "copies":
                stream = stream.native(operators.Costly, 0, 2).filter(lambda n: n % 3 != 0)
            case "fails":
                stream = stream.native(operators.FailsAt, fails_at)
            case "map":
                stream = stream.map(lambda n: n + 3)
            case "total":
                stream = stream.native(operators.Total)
            case "keyed":
                stream = stream.native(operators.Total, partitions=4)
            case "split":
                side = stream.native(operators.AddOne).native(operators.Even)
                sides.append(side.collect(name=f"side {len(sides)}"))
    return Graph(stream.collect(name="end"), *sides)


def outcome(run: Any) -> Any:
    try:
        return run()
    except StreamError as error:
        return error.operator, str(error.__cause__)


@pytest.mark.parametrize("workers", [1, 2, 4])
@settings(max_examples=40, deadline=None)
@given(steps=STEPS, fails_at=st.integers(0, 700), batch_size=st.sampled_from([1, 7, 64, 512]))
def test_a_chain_gives_what_its_operators_give_in_sequence(
    operators: ModuleType, workers: int, steps: list[str], fails_at: int, batch_size: int
) -> None:
    graph = chain(entry("x", int), steps, operators, fails_at)
    expected = outcome(lambda: graph.run_sequentially({"x": ROWS}))
    with ActorSystem(workers=workers) as system:
        for options in ({}, {"policy": "last_in_pipeline"}):
            run = system.run(graph, batch_size=batch_size, window=8, **options)

            def send(run: Any = run) -> Any:
                run.send("x", ROWS)
                return run.finish(timeout=60)

            assert outcome(send) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_each_operator_of_a_chain_has_figures_of_its_own(
    operators: ModuleType, workers: int
) -> None:
    stream: Any = entry("x", int)
    for _ in range(20):  # more than one chain takes
        stream = stream.native(operators.AddOne)
    graph = stream.native(operators.Even).native(operators.AddOne).collect()
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, batch_size=10)
        run.send("x", ROWS)
        assert run.finish(timeout=60) == [n + 21 for n in ROWS if n % 2 == 0]
        figures = run.statistics().operators
    assert [each.rows_in for each in figures] == [500] * 21 + [250, 250]
    assert [each.rows_out for each in figures][:22] == [500] * 20 + [250, 250]
    assert all(each.busy > 0 for each in figures[:22])  # of the first round


def test_a_thousand_operators_are_passed_in_order(operators: ModuleType) -> None:
    stream: Any = entry("x", int)
    for _ in range(1000):
        stream = stream.native(operators.AddOne)
    with ActorSystem(workers=2) as system:
        run = system.run(stream.collect(), batch_size=3)
        run.send("x", ROWS)
        assert run.finish(timeout=60) == [n + 1000 for n in ROWS]
