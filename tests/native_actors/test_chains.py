"""Native operators that need no order, one behind the other: one stage, and the same answers."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import Graph, RunTimeout, StreamError, entry

ROWS = list(range(500))

# What follows what: native ones that need no order, and what comes between chains.
STEPS = st.lists(
    st.sampled_from(["add", "add", "even", "copies", "fails", "map", "total", "keyed", "split"]),
    max_size=40,
)


def chain(stream: Any, steps: list[str], operators: ModuleType, fails_at: int) -> Graph[Any]:
    sides: list[Any] = []
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
        for policy in (None, "last_in_pipeline"):
            run = system.run(graph, batch_size=batch_size, window=8, policy=policy)

            def send(run: Any = run) -> Any:
                run.send("x", ROWS)
                return run.finish(timeout=60)

            assert outcome(send) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_each_operator_of_a_chain_has_its_figures(operators: ModuleType, workers: int) -> None:
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


@pytest.mark.parametrize("workers", [1, 2])
def test_an_operators_figures_under_any_scheduling(operators: ModuleType, workers: int) -> None:
    chains = [
        entry(name).native(operators.AddOne).native(operators.AddOne).collect(name=name * 2)
        for name in "abc"
    ]
    with ActorSystem(workers=workers) as system:
        run = system.run(Graph(*chains))
        for row in range(100):
            for name in "abc":
                run.send(name, [row])
        assert run.finish(timeout=60) == {name * 2: list(range(2, 102)) for name in "abc"}
        figures = run.statistics().operators
    natives = [each for each in figures if each.name.startswith("AddOne")]
    assert [each.rows_in for each in natives] == [100] * 6
    assert all(each.cost > 0 and each.busy > 0 for each in natives)


@pytest.mark.parametrize("model", MODELS)
def test_chains_lie_beside_parts_of_other_models(operators: ModuleType, model: Model) -> None:
    stream: Any = entry("x", int).native(operators.AddOne).native(operators.AddOne)
    stream = stream.run_on(model).native(operators.AddOne).native(operators.Twice)
    stream = stream.run_on("dynamic").native(operators.AddOne).native(operators.AddOne)
    graph = Graph(
        stream.collect(name="one"), stream.native(operators.Even).native(operators.Even).collect()
    )
    expected = graph.run_sequentially({"x": ROWS})
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=7)
        run.send("x", ROWS)
        assert run.finish(timeout=60) == expected


def test_buffers_pass_a_chain_and_are_let_go(operators: ModuleType) -> None:
    stream: Any = entry("x").native(operators.Costly, 0, 3).native(operators.Costly)
    data = [bytearray(1000) for _ in range(200)]
    with ActorSystem(workers=2) as system:
        run = system.run(stream.native(operators.Costly, 0, 2).collect(), batch_size=9)
        run.send("x", [1, 2.5, *data])
        result = run.finish(timeout=60)
    assert result[:12] == [1] * 6 + [2.5] * 6
    assert [bytes(each) for each in result[12:]] == [bytes(1000)] * 1200
    del result, run
    for each in data:
        each.append(1)  # a BufferError while something refers to it


def test_a_run_that_is_cancelled_drops_what_is_in_a_chain(operators: ModuleType) -> None:
    stream: Any = entry("x")
    for _ in range(40):
        stream = stream.native(operators.Costly, 10_000)
    with ActorSystem(workers=2) as system:
        run = system.run(stream.collect(), batch_size=1, window=16)
        with pytest.raises(RunTimeout):
            run.send("x", ROWS * 1000, timeout=0.05)
        run.cancel()
        again = system.run(stream.collect())
        again.send("x", ROWS[:3])
        assert again.finish(timeout=60) == ROWS[:3]


def test_a_thousand_operators_are_passed_in_order(operators: ModuleType) -> None:
    stream: Any = entry("x", int)
    for _ in range(1000):
        stream = stream.native(operators.AddOne)
    with ActorSystem(workers=2) as system:
        run = system.run(stream.collect(), batch_size=3)
        run.send("x", ROWS)
        assert run.finish(timeout=60) == [n + 1000 for n in ROWS]
