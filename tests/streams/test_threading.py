"""Threading models: the threads that run operators, and behaviour common to all models."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.messages import DeadLetter
from callboard.policies import Fixed
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import Graph, RunEnded, RunError, RunTimeout, Stream, entry
from callboard.streams.running import stall_detector
from callboard.testing import ManualSystem
from tests.streams.witness import ROWS, Witness, feed, pipeline


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as system:
        yield system


# --- who runs what -------------------------------------------------------------------------------


def test_manual_operators_are_run_by_the_caller(system: ActorSystem, witness: Witness) -> None:
    run = system.run(pipeline(witness, "a", "b", "c"), threading="manual", batch_size=7)
    assert feed(run) == [row + 3 for row in ROWS]
    here = threading.current_thread()
    assert {*witness.threads} == {"a", "b", "c"}
    assert all(witness.only(name) is here for name in "abc")


def test_in_manual_a_row_has_passed_all_operators_when_send_returns(system: ActorSystem) -> None:
    seen: list[int] = []
    with system.run(entry("x", int).map(abs).to(seen.append), threading="manual") as run:
        for row in range(5):
            run.send("x", [-row])
            assert seen[-1] == row


def test_a_threaded_port_hands_over(system: ActorSystem, witness: Witness) -> None:
    a = entry("x", int).map(witness.at("a"))
    b = a.new_thread().map(witness.at("b")).map(witness.at("b2"))
    c = b.new_thread().map(witness.at("c"))
    run = system.run(Graph(a.collect(name="a"), c.collect(name="c")), threading="manual")
    assert feed(run)["c"] == [row + 4 for row in ROWS]
    assert witness.only("a") is threading.current_thread()
    assert witness.only("b") is witness.only("b2")
    assert len({witness.only(name) for name in "abc"}) == 3


def test_a_threads_part_does_not_go_back(system: ActorSystem, witness: Witness) -> None:
    a = entry("x", int).map(witness.at("a"))
    b = a.new_thread().map(witness.at("b"))
    run = system.run(a.union(b).map(witness.at("c")).collect(), threading="manual")
    assert len(feed(run)) == 2 * len(ROWS)
    assert witness.only("a") is threading.current_thread()
    assert witness.only("b") is witness.only("c")


def test_a_thread_may_be_on_both_sides_of_another(system: ActorSystem, witness: Witness) -> None:
    a = entry("x", int).new_thread().map(witness.at("a"))
    b = a.new_thread().map(witness.at("b"))
    graph = a.union(b).map(witness.at("c")).collect()
    rows = feed(system.run(graph, threading="manual", window=2, batch_size=3))
    assert rows == graph.run_sequentially({"x": ROWS})
    assert threading.current_thread() in witness.threads["a"]  # of the sequential run
    witness.threads.clear()
    feed(system.run(graph, threading="manual", window=2, batch_size=3))
    assert witness.only("a") is witness.only("c")
    assert witness.only("a") is not witness.only("b")


def test_dedicated_operators_have_a_thread_each(system: ActorSystem, witness: Witness) -> None:
    run = system.run(pipeline(witness, "a", "b", "c"), threading="dedicated", batch_size=7)
    threads = {each.name: each.thread for each in run.statistics().operators}
    assert feed(run) == [row + 3 for row in ROWS]
    assert len({witness.only(name) for name in "abc"}) == 3
    assert [threads[name] for name in "abc"] == [witness.only(name).name for name in "abc"]
    assert len(set(threads.values())) == 4


@pytest.mark.parametrize("releases_gil", [True, False])
def test_assigned_operators_are_run_by_their_home_worker(
    witness: Witness, releases_gil: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_gil() and not releases_gil:
        pytest.skip("where the interpreter has a lock, its token says which worker runs Python")
    monkeypatch.setattr(stall_detector, "_LONG", 3600.0)  # a worker that is late is left alone
    with ActorSystem(workers=2) as system:
        stream = entry("x", int)
        for name in "abc":
            stream = stream.map(witness.at(name), name=name, releases_gil=releases_gil)
        run = system.run(stream.collect(), threading="assigned", batch_size=7)
        homes = {each.name: each.thread for each in run.statistics().operators}
        assert feed(run) == [row + 3 for row in ROWS]
        workers = [worker.name for worker in system._runtime.team.workers]
    assert [homes[name] for name in "abc"] == [workers[0], workers[1], workers[0]]
    assert [witness.only(name).name for name in "abc"] == [homes[name] for name in "abc"]


def test_a_moved_operator_is_run_by_its_new_home(system: ActorSystem, witness: Witness) -> None:
    stream = entry("x", int).map(witness.at("a"), name="a", releases_gil=True)
    run = system.run(stream.collect(), threading="assigned", placement=Fixed(0))
    run.send("x", ROWS)
    while run.statistics().rounds_done < run.statistics().rounds:
        pass
    system.drain()  # a lane that looks for more rows stays where it is
    assert witness.only("a").name == system._runtime.team.workers[0].name
    assert run.rebalance(Fixed(1)) == 2  # and the sink
    assert run.rebalance(Fixed(1)) == 0
    assert {each.thread for each in run.statistics().operators} == {
        system._runtime.team.workers[1].name
    }
    assert feed(run) == [row + 1 for row in ROWS * 2]
    assert system._runtime.team.workers[1].name in {thread.name for thread in witness.threads["a"]}


def test_an_operator_in_python_moves_to_a_worker_that_had_no_thread(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect(), threading="assigned", placement=Fixed(0))
    run.rebalance(Fixed(1))
    system.drain()  # so that no worker has the token, and the lane goes home
    assert feed(run) == ROWS
    assert len(system.statistics().workers) == 2


def test_nothing_is_lost_or_reordered_while_operators_move(system: ActorSystem) -> None:
    stream = entry("x", int)
    for _ in range(5):
        stream = stream.map(lambda row: row + 1, releases_gil=True)
    run = system.run(stream.collect(), threading="assigned", window=4, batch_size=3)
    over = threading.Event()

    def move() -> None:
        turn = 0
        while not over.is_set():
            run.rebalance(Fixed(turn % 2))
            turn += 1

    mover = threading.Thread(target=move)
    mover.start()
    try:
        assert feed(run, range(3000)) == [row + 5 for row in range(3000)]
    finally:
        over.set()
        mover.join(60)


class Pool(Actor[Any]):
    """Runs a graph from its handler."""

    def receive(self, message: tuple[Graph[Any], Model]) -> Any:
        graph, model = message
        run = self.system.run(graph, threading=model, window=2, batch_size=3)
        run.send("x", ROWS)
        return run.finish(timeout=60)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_an_actor_may_run_a_graph_by_any_model(model: Model, workers: int) -> None:
    graph = entry("x", int).map(lambda row: row + 1).new_thread().map(abs, releases_gil=True)
    with ActorSystem(workers=workers) as system:
        runner = system.spawn(Pool)
        assert runner.ask((graph.collect(), model)).result(timeout=60) == [r + 1 for r in ROWS]


def test_a_manual_run_of_an_actor_is_that_actors(system: ActorSystem) -> None:
    class Feeder(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return message()

    run = system.run(entry("x", int).collect(), threading="manual")
    first, second = system.spawn(Feeder), system.spawn(Feeder)
    for _ in range(3):
        first.ask(lambda: run.send("x", [1])).result(timeout=60)
    with pytest.raises(RunError, match="manual"):
        second.ask(lambda: run.send("x", [2])).result(timeout=60)
    assert first.ask(run.finish).result(timeout=60) == [1, 1, 1]


# --- mixtures ------------------------------------------------------------------------------------


def test_a_part_of_a_graph_has_a_model_of_its_own(system: ActorSystem, witness: Witness) -> None:
    stream = entry("x", int).map(witness.at("a"), name="a")
    stream = stream.run_on("dedicated").map(witness.at("b"), name="b")
    stream = stream.run_on("manual").map(witness.at("c"), name="c").map(witness.at("d"))
    stream = stream.run_on("dynamic").map(witness.at("e"), name="e")
    run = system.run(stream.collect(), threading="manual")
    assert feed(run) == [row + 5 for row in ROWS]
    assert witness.only("a") is threading.current_thread()
    assert witness.only("b").name == run.statistics().operators[1].thread
    assert witness.only("c").name == run.statistics().operators[2].thread
    assert len({witness.only(name) for name in "abc"}) == 3
    models = [each.threading for each in run.statistics().operators]
    assert models == ["manual", "dedicated", "manual", "manual", "dynamic", "dynamic"]


def test_the_caller_runs_only_what_it_feeds(system: ActorSystem, witness: Witness) -> None:
    parted = entry("x", int).run_on("manual").branch(lambda row: row % 2 == 0)
    even, odd = parted[0].map(witness.at("even")), parted[1].map(witness.at("odd"))
    joined = even.union(odd.run_on("dynamic").map(witness.at("dynamic"), name="d"))
    graph = joined.map(witness.at("joined")).collect()
    rows = feed(system.run(graph))
    assert witness.only("even") is witness.only("odd") is threading.current_thread()
    assert witness.only("joined") is not threading.current_thread()
    assert rows == graph.run_sequentially({"x": ROWS})


# --- what the models have in common --------------------------------------------------------------


class Refusing:
    def __init__(self) -> None:
        self.total = 0

    def receive(self, row: int) -> list[int]:
        if row % 100 == 13:
            raise ValueError(row)
        self.total += row
        return [self.total]


@pytest.mark.parametrize("model", MODELS)
def test_skipped_rows_are_dead_letters_of_the_run(system: ActorSystem, model: Model) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    graph = entry("x", int).stateful(Refusing, errors="skip").collect()
    run = system.run(graph, threading=model)
    assert feed(run) == graph.run_sequentially({"x": ROWS})
    assert [letter.message.row for letter in letters] == [13, 113, 213]
    assert run.statistics().skipped == 3


@pytest.mark.parametrize("model", MODELS)
def test_a_manual_system_waits_for_no_throttled_operator(model: Model) -> None:
    with ManualSystem() as manual:
        graph = entry("x", int).throttle(1.0).new_thread().throttle(0.5).collect()
        assert feed(manual.run(graph, threading=model)) == ROWS


def test_a_sender_whose_operators_rest_gets_its_rows_back(system: ActorSystem) -> None:
    run = system.run(entry("x", int).throttle(0.001).collect(), threading="manual", batch_size=2)
    rows = iter(range(6))
    with pytest.raises(RunTimeout, match="rests for") as raised:
        run.send("x", rows, timeout=0.01)
    assert (raised.value.sent, raised.value.unsent) == (2, [2, 3])
    run.cancel()


def test_a_cancel_ends_the_rest_of_who_sends(system: ActorSystem) -> None:
    run = system.run(entry("x", int).throttle(0.001).collect(), threading="manual")
    run.send("x", [1])
    canceller = threading.Thread(target=run.cancel)
    canceller.start()

    def send_on() -> None:
        while True:
            run.send("x", iter([2]), timeout=60)

    with pytest.raises(RunEnded) as raised:  # before the rest, in it, or just after it
        send_on()
    canceller.join(60)
    assert raised.value.sent + len(raised.value.unsent) in {0, 1}


@pytest.mark.parametrize("model", MODELS)
def test_a_cancelled_run_ends(system: ActorSystem, model: Model) -> None:
    run = system.run(entry("x", int).map(abs).new_thread().collect(), threading=model)
    run.send("x", ROWS)
    run.cancel()
    with pytest.raises(RunEnded):
        run.send("x", [1])
    with pytest.raises(RunEnded):
        run.finish()


@pytest.mark.parametrize("model", MODELS)
def test_a_graph_is_run_again_and_again(system: ActorSystem, model: Model) -> None:
    graph = entry("x", int).stateful(Refusing, errors="skip").new_thread().map(abs).collect()
    results = [feed(system.run(graph, threading=model)) for _ in range(5)]
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("model", MODELS)
def test_a_stopped_system_ends_its_runs(model: Model) -> None:
    with ActorSystem() as system:
        run = system.run(entry("x", int).map(abs).collect(), threading=model)
        run.send("x", ROWS)
        system.stop()
        with pytest.raises(RunError):
            run.send("x", ROWS)


def test_ten_thousand_operators_are_run_by_the_caller(system: ActorSystem) -> None:
    stream: Stream[int] = entry("x", int)
    for _ in range(10_000):
        stream = stream.map(lambda row: row + 1)
    run = system.run(stream.collect(), threading="manual", batch_size=2)
    assert feed(run, range(5)) == [row + 10_000 for row in range(5)]


def test_a_wide_graph_is_run_by_one_thread(system: ActorSystem) -> None:
    stream = entry("x", int).new_thread()
    joined = stream.union(*(stream.map(partial(operator.add, n)) for n in range(300)))
    graph = joined.collect()
    assert feed(system.run(graph, threading="manual"), [1, 2]) == graph.run_sequentially(
        {"x": [1, 2]}
    )
