"""Threading models: callers, refusals, descriptions, configurations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from callboard import ActorSystem
from callboard.core.errors import CallboardError, ConfigError, PolicyError
from callboard.policies import Fixed, PlacementPolicy
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import GraphError, Run, RunError, SideOutput, StreamError, entry
from tests.streams.witness import ROWS, feed


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as system:
        yield system


# --- who calls -----------------------------------------------------------------------------------


def test_a_second_thread_is_refused_and_loses_nothing(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect(), threading="manual")
    run.send("x", [1, 2])
    rows = iter([3, 4])
    errors: list[RunError] = []

    def call(method: Callable[[], object]) -> None:
        try:
            method()
        except RunError as error:
            errors.append(error)

    for method in (lambda: run.send("x", rows), run.finish):
        thread = threading.Thread(target=call, args=[method], name="the other")
        thread.start()
        thread.join(60)
    first, second = errors
    assert "MainThread" in str(first)
    assert "the other" in str(first)
    assert "'manual'" in str(second)
    assert (first.sent, first.unsent) == (0, ())
    run.send("x", rows)
    assert run.finish(timeout=60) == [1, 2, 3, 4]


def test_any_thread_may_send_where_other_threads_work(system: ActorSystem) -> None:
    run = system.run(entry("x", int).new_thread().collect(), threading="manual")
    thread = threading.Thread(target=run.send, args=["x", [1]])
    thread.start()
    thread.join(60)
    run.send("x", [2])
    assert run.finish(timeout=60) == [1, 2]


def test_an_interrupt_in_an_operator_reaches_the_caller(system: ActorSystem) -> None:
    def interrupted(row: int) -> int:
        if row == 2:
            raise KeyboardInterrupt
        return row

    run = system.run(entry("x", int).map(interrupted).collect(), threading="manual", batch_size=2)
    with pytest.raises(KeyboardInterrupt) as raised:
        run.send("x", iter(range(10)))
    assert cast("Any", raised.value).sent == 4
    with pytest.raises(StreamError):
        run.finish()


@pytest.mark.parametrize("model", MODELS)
def test_an_operator_that_sends_to_its_run_is_refused(system: ActorSystem, model: Model) -> None:
    runs: list[Run[Any]] = []
    graph = entry("x", int).map(lambda row: runs[0].send("x", [row])).collect()
    runs.append(system.run(graph, threading=model))
    with pytest.raises(StreamError) as raised:
        feed(runs[0], [1])
    assert isinstance(raised.value.__cause__, RunError)


# --- what is refused -----------------------------------------------------------------------------


def test_an_unknown_model_is_refused(system: ActorSystem) -> None:
    stream = entry("x", int)
    wanted = "must be one of dynamic, manual, dedicated, assigned, got 'fast'"
    with pytest.raises(GraphError, match=f"a threading model {wanted}"):
        stream.run_on(cast("Any", "fast"))
    with pytest.raises(ConfigError, match=f"threading {wanted}"):
        system.run(stream.collect(), threading=cast("Any", "fast"))
    with pytest.raises(GraphError, match=f"threading {wanted}"):
        stream.collect().describe(threading=cast("Any", "fast"))
    with pytest.raises(ConfigError, match="got 3"):
        system.run(stream.collect(), threading=3)


@pytest.mark.parametrize("model", ["dynamic", "manual", "dedicated"])
def test_a_placement_is_refused_where_nothing_is_placed(system: ActorSystem, model: Model) -> None:
    wanted = f"placement is for .*'assigned', and all of this graph are '{model}'.*'blocks'"
    with pytest.raises(ConfigError, match="policy 'blocks'"):  # its size is missing
        system.run(entry("x").collect(), threading=model, placement="blocks")
    with pytest.raises(ConfigError, match=wanted.replace("blocks", "balanced")):
        system.run(entry("x").collect(), threading=model, placement="balanced")
    assert not system.actors


@pytest.mark.parametrize("model", ["manual", "dedicated", "assigned"])
def test_a_heuristic_is_refused_where_nobody_chooses(system: ActorSystem, model: Model) -> None:
    wanted = f"policy is for .*'dynamic', and all of this graph are '{model}'.*'estimated_time'"
    with pytest.raises(ConfigError, match=wanted):
        system.run(entry("x").collect(), threading=model, policy="estimated_time")
    mixed = entry("x", int).map(abs).run_on("dynamic").collect()
    run = system.run(mixed, threading=model, policy="estimated_time")
    assert feed(run) == ROWS


@pytest.mark.parametrize("model", ["dynamic", "manual", "dedicated"])
def test_a_rebalance_of_nothing_assigned_is_refused(system: ActorSystem, model: Model) -> None:
    run = system.run(entry("x").collect(), threading=model)
    with pytest.raises(RunError, match="'assigned'"):
        run.rebalance()
    run.cancel()


def test_a_rebalance_by_nonsense_is_refused(system: ActorSystem) -> None:
    with system.run(entry("x").collect(), threading="assigned") as run:
        with pytest.raises(ConfigError, match="'blcks'"):
            run.rebalance("blcks")
        with pytest.raises(PolicyError, match="no worker 7"):
            run.rebalance(Fixed(7))


def test_a_run_whose_placement_fails_leaves_no_lane_behind(system: ActorSystem) -> None:
    class Failing(PlacementPolicy):
        calls = 0

        def place(self, actor: Any, workers: Any) -> Any:
            self.calls += 1
            if self.calls == 3:
                raise ValueError("no")
            return workers[0]

    graph = entry("x", int).map(abs).map(abs).map(abs).collect()
    with pytest.raises(PolicyError):
        system.run(graph, threading="assigned", placement=Failing())
    with pytest.raises(CallboardError):
        system.run(graph, threading="assigned", placement=Fixed(9))
    assert system.join(0) or not any(lane._is_dedicated for lane in system.actors)


# --- what can be seen ----------------------------------------------------------------------------


def test_a_graph_shows_who_works_on_what() -> None:
    stream = entry("x", int).map(abs, name="a").new_thread().map(abs, name="b")
    graph = stream.run_on("dedicated").map(abs, name="c").collect(name="end")
    assert graph.describe(threading="manual") == (
        "x    entry\n"
        "a    map, of x, manual, the caller\n"
        "b    map, of a, manual, thread 1\n"
        "c    map, of b, dedicated\n"
        "end  collect, of c, dedicated\n"
    )
    assert "b    map, of a, any number of workers\n" in graph.describe()
    assert 'o2["b<br/>map<br/>manual, thread 1"]' in graph.mermaid(threading="manual")
    assert 'o2["b<br/>map"]' in graph.mermaid()
    assert "map · manual, thread 1<" in graph.draw(threading="manual")
    assert "map · dedicated<" in graph.draw()


def test_members_of_a_thread_have_statistics_of_their_own(system: ActorSystem) -> None:
    stream = entry("x", int).filter(lambda row: row % 3 == 0, name="third")
    graph = stream.flat_map(lambda row: [row, row], name="twice").collect(name="end")
    run = system.run(graph, threading="manual", batch_size=10)
    feed(run)
    third, twice, end = run.statistics().operators
    assert (third.rows_in, third.rows_out, twice.rows_out, end.rows_in) == (300, 100, 200, 200)
    assert (third.selectivity, twice.selectivity) == (100 / 300, 2.0)
    assert third.cost > 0
    assert third.busy > 0
    assert {each.thread for each in (third, twice, end)} == {"the caller"}


# --- the configuration ---------------------------------------------------------------------------


def test_a_configured_placement_alone_is_for_what_is_assigned_and_changes_no_model() -> None:
    placement = {"policy": "fixed", "worker": 1}
    settings = {"name": "own", "workers": 2, "streams": {"placement": placement}}
    graph = entry("x", int).map(abs).run_on("assigned").map(abs, name="placed").collect()
    with ActorSystem(config=settings) as system:
        run = system.run(graph)
        operators = run.statistics().operators
        assert feed(run) == ROWS
    assert [each.threading for each in operators] == ["dynamic", "assigned", "assigned"]
    assert {each.thread for each in operators[1:]} == {"own-1"}


def test_a_configuration_names_the_model_of_graphs() -> None:
    settings = {"workers": 2, "streams": {"threading": "assigned", "placement": "balanced"}}
    with ActorSystem(config=settings) as system:
        graph = entry("x", int).map(abs).collect()
        with system.run(graph) as run:
            assert {each.threading for each in run.statistics().operators} == {"assigned"}
        with system.run(graph, threading="manual") as run:
            assert {each.threading for each in run.statistics().operators} == {"manual"}


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({"threading": "fast"}, "threading of streams must be one of dynamic, .*, got 'fast'"),
        ({"threads": 2}, "no setting 'threads' of streams; there are threading, placement"),
        ({"placement": "blcks"}, "placement of streams: no policy 'blcks'"),
        ("manual", "streams must be a table, got 'manual'"),
    ],
)
def test_a_wrong_configuration_of_graphs_is_refused(streams: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ActorSystem(config={"streams": streams})


# --- of a thread that has both what needs the interpreter lock and what does not ---------------


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("between", ["dynamic", "dedicated", "assigned"])
def test_a_thread_works_on_all_that_is_its_own(between: Model, free: bool) -> None:
    def odd_aside(row: int) -> list[int | SideOutput]:
        return [SideOutput("odd", row) if row % 2 else row]

    port = entry("x", int).map(lambda row: row + 1).run_on("manual").new_thread()
    even = port.flat_map(odd_aside, sides=["odd"], releases_gil=free)
    odd = even.side("odd").run_on(between).map(lambda row: -row)
    graph = even.union(odd).run_on(between).collect()
    with ActorSystem(workers=3) as system:
        run = system.run(graph, threading="dedicated", window=16)
        for row in range(40):
            run.send("x", [row], timeout=30)
        assert run.finish(timeout=30) == [-row if row % 2 else row for row in range(1, 41)]
