"""Runs: sending, finishing, failing, cancelling, waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.core.errors import CallboardError
from callboard.messages import DeadLetter
from callboard.streams import GraphError, Run, RunEnded, RunTimeout, StreamError, entry
from callboard.testing import ManualSystem
from tests.streams.summing import ROWS, feed, shape
from tests.waiting import in_threads


@pytest.fixture(params=[1, 2, 4], ids="{}-workers".format)
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    with ActorSystem(workers=request.param) as system:
        yield system


def test_a_configuration_may_name_the_heuristic_of_graphs() -> None:
    with ActorSystem(workers=2, config={"streams": {"policy": "current_throughput"}}) as system:
        run = system.run(shape())
        run.send("numbers", ROWS)
        assert run.finish(timeout=60) == shape().run_sequentially({"numbers": ROWS})


def test_finish_gives_the_same_result_again(system: ActorSystem) -> None:
    run = system.run(entry("x").collect())
    run.send("x", [1, 2])
    assert run.finish(timeout=60) == [1, 2]
    assert run.finish() == [1, 2]


def test_a_run_is_a_context_manager_that_finishes(system: ActorSystem) -> None:
    got: list[int] = []
    with system.run(entry("x", int).to(got.append)) as run:
        run.send("x", ROWS)
    assert got == ROWS


def test_rows_of_several_senders_keep_each_senders_order(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), batch_size=3, window=4)
    in_threads(lambda name: run.send("x", [(name, n) for n in range(500)]), "abc")
    rows = run.finish(timeout=60)
    assert len(rows) == 1500
    for name in "abc":
        assert [n for who, n in rows if who == name] == list(range(500))


# --- failures -----------------------------------------------------------------------------------


def test_a_failed_run_takes_no_more_rows_and_says_why(system: ActorSystem) -> None:
    run = system.run(entry("x", int).map(lambda n: 1 // n).collect())
    with pytest.raises(StreamError):
        feed(run, "x", [0])
    with pytest.raises(StreamError, match="input 0"):
        run.send("x", [1])


def test_a_skipped_row_is_a_dead_letter_and_nothing_waits_for_it(system: ActorSystem) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    run = system.run(entry("x", int).map(lambda n: 6 // n, errors="skip").collect())
    run.send("x", [1, 0, 2, 0, 3])
    assert run.finish(timeout=60) == [6, 3, 2]
    assert [letter.message.serial for letter in letters] == [1, 3]
    assert run.statistics().skipped == 2


def test_a_run_says_by_what_it_failed(system: ActorSystem) -> None:
    run = system.run(entry("x").map(lambda x: 6 // x, name="divide").collect())
    run.send("x", [1, 2])
    assert run.failure is None
    run.send("x", [3, 0])
    with pytest.raises(StreamError) as raised:
        run.finish(timeout=60)
    assert isinstance(run.failure, StreamError)
    assert str(run.failure) == str(raised.value) == "operator 'divide' failed at input 3, 0"
    assert isinstance(run.failure.__cause__, ZeroDivisionError)


# --- the end ------------------------------------------------------------------------------------


class Gate:
    """An operator that stays in its first row until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, row: int) -> int:
        self.entered.set()
        assert self.opened.wait(60)
        return row


def test_a_full_window_makes_the_sender_wait_until_its_timeout() -> None:
    gate = Gate()
    with ActorSystem() as system:
        run = system.run(entry("x", int).map(gate, name="gate").collect(), batch_size=1, window=4)
        run.send("x", [0])
        assert gate.entered.wait(60)
        with pytest.raises(RunTimeout, match="'gate' has about") as raised:
            run.send("x", range(1, 100), timeout=0.05)
        assert raised.value.sent == 3
        gate.opened.set()
        run.send("x", range(4, 10), timeout=60)
        assert run.finish(timeout=60) == list(range(10))


def test_finish_may_time_out_and_be_called_again() -> None:
    gate = Gate()
    with ActorSystem() as system:
        run = system.run(entry("x", int).map(gate).collect())
        run.send("x", [1])
        with pytest.raises(RunTimeout, match="did not end"):
            run.finish(timeout=0.05)
        gate.opened.set()
        assert run.finish(timeout=60) == [1]


def test_cancel_drops_what_is_on_its_way_and_returns() -> None:
    gate = Gate()
    got: list[int] = []
    with ActorSystem() as system:
        run = system.run(entry("x", int).map(gate).to(got.append), batch_size=1)
        run.send("x", range(50))
        assert gate.entered.wait(60)
        run.cancel(timeout=0.05)
        gate.opened.set()
        with pytest.raises(CallboardError, match="cancelled"):
            run.finish(timeout=60)
        with pytest.raises(CallboardError, match="takes no more rows"):
            run.send("x", [1])
    assert got == []


def test_a_stopped_system_ends_a_waiting_finish() -> None:
    gate = Gate()
    system = ActorSystem()
    run = system.run(entry("x", int).map(gate).collect())
    run.send("x", [1])
    assert gate.entered.wait(60)
    failed: list[BaseException] = []

    def finish() -> None:
        try:
            run.finish()
        except CallboardError as error:
            failed.append(error)

    waiting = threading.Thread(target=finish)
    waiting.start()
    stopping = threading.Thread(target=system.stop)
    stopping.start()
    gate.opened.set()
    stopping.join(60)
    waiting.join(60)
    assert not waiting.is_alive()
    assert failed == [] or "was stopped before" in str(failed[0])


def test_a_caller_after_the_systems_end_is_told_of_it_and_not_of_a_cancel() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x", int).collect())
        for _ in range(2):  # the second end changes nothing
            run._work.end_with_system()
        with pytest.raises(RunEnded, match=r"was stopped before <Run ended, .*> ended"):
            run._work.waiting.until(run._work.flow.admitted + 1)
        run = system.run(entry("x", int).collect())
        run.cancel()
        run._work.end_with_system()
        with pytest.raises(RunEnded, match="was cancelled"):
            run._work.waiting.until(run._work.flow.admitted + 1)


def test_a_forgotten_run_leaves_no_actors_behind() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x").collect())
        run.send("x", [1])
        del run
        system.drain()
        assert system.actors == []


def test_more_workers_than_a_run_can_have_lanes_do_no_harm() -> None:
    with ActorSystem(workers=70) as system:
        run = system.run(entry("x", int).map(lambda n: n, releases_gil=True).collect())
        assert len(system.actors) == 64
        assert feed(run, "x", ROWS) == ROWS


def test_an_actor_that_sends_helps_with_the_work_while_it_waits() -> None:
    class Feeder(Actor[int]):
        def receive(self, message: int) -> int:
            graph = entry("x", int).map(lambda n: n + 1).collect()
            run = self.system.run(graph, batch_size=1, window=2)
            return sum(feed(run, "x", range(message)))

    with ActorSystem() as system:
        assert system.spawn(Feeder).ask(500).result(timeout=60) == sum(range(1, 501))


@pytest.mark.parametrize("call", ["send", "finish"])
def test_an_operator_that_waits_for_its_own_run_is_refused(system: ActorSystem, call: str) -> None:
    runs: list[Run[Any]] = []

    def loop(n: int) -> None:
        if call == "send":
            runs[0].send("x", [n])
        else:
            runs[0].finish()

    runs.append(system.run(entry("x", int).to(loop), batch_size=1))
    with pytest.raises(StreamError) as raised:
        feed(runs[0], "x", [1])
    assert "waits for that operator" in str(raised.value.__cause__)


def test_a_run_that_is_dropped_before_it_is_finished_warns() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x").collect())
        run.send("x", [1])
        with pytest.warns(ResourceWarning, match="was never finished"):
            del run


# --- bad input ----------------------------------------------------------------------------------


def test_an_unknown_option_is_an_error_of_run() -> None:
    options: dict[str, Any] = {"nonsense": 1}
    unexpected = r"run\(\) of a Graph got an unexpected option 'nonsense'"
    with ActorSystem() as system, pytest.raises(TypeError, match=unexpected):
        system.run(shape(), **options)


def test_an_unknown_entry_is_refused_with_those_that_there_are(system: ActorSystem) -> None:
    run = system.run(shape())
    with pytest.raises(GraphError, match="no entry 'clicks': it has 'numbers'"):
        run.send("clicks", [])
    run.finish(timeout=60)


@pytest.mark.parametrize("rows", [7, "text", {"a": 1}, b"bytes"])
def test_rows_are_an_iterable(system: ActorSystem, rows: Any) -> None:
    run = system.run(shape())
    with pytest.raises(TypeError, match="send\\(\\) expects an iterable of rows, got"):
        run.send("numbers", rows)
    run.finish(timeout=60)


def test_a_closed_system_runs_nothing() -> None:
    system = ActorSystem()
    system.stop()
    with pytest.raises(CallboardError, match="was stopped"):
        system.run(shape())


# --- under seeded replay ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_interleaving() -> None:
    def trace(seed: int) -> list[Any]:
        with ManualSystem(seed) as system:
            run = system.run(shape(), batch_size=100, window=4)
            run.send("numbers", ROWS)
            run.finish()
            return system.trace

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)


def test_statistics_count_rows_at_each_operator(system: ActorSystem) -> None:
    graph = entry("x", int).filter(lambda n: n % 2 == 0, name="even").collect()
    run = system.run(graph, markers=1)
    run.send("x", ROWS)
    run.finish(timeout=60)
    statistics = run.statistics()
    even = statistics.operators[0]
    assert (even.name, even.rows_in, even.rows_out) == ("even", 5000, 2500)
    assert statistics.rows == 5000
    assert statistics.rounds == statistics.rounds_done
    assert statistics.processing is not None
    assert 0 < statistics.processing.median <= statistics.processing.longest


def test_statistics_count_what_the_parts_of_a_keyed_operator_give() -> None:
    graph = entry("x", int).key_by(lambda n: n % 10, partitions=4).count(name="count").collect()
    with ManualSystem() as system:  # it works by parts, as a build without an interpreter lock does
        run = system.run(graph, batch_size=16)
        run.send("x", ROWS)
        run.finish(timeout=60)
        rows_out = [one.rows_out for one in run.statistics().operators if one.name == "count"]
    assert rows_out[-1] == len(ROWS)


# --- parallel Python ------------------------------------------------------------------------------


def test_functions_that_release_the_interpreter_run_on_several_workers_at_once() -> None:
    both = threading.Barrier(2)

    def meet(n: int) -> int:
        both.wait(60)  # for ever, if the other worker did not come
        return n

    with ActorSystem(workers=2) as system:
        graph = entry("x", int).map(meet, releases_gil=True).collect()
        assert feed(system.run(graph, batch_size=1), "x", range(20)) == list(range(20))


def test_keys_of_different_partitions_are_done_at_once_where_the_interpreter_is_released() -> None:
    both = threading.Barrier(2)

    class Meet:
        def receive(self, row: int) -> list[int]:
            both.wait(60)
            return [row]

    with ActorSystem(workers=2) as system:
        stream = entry("x", int).key_by(lambda n: n % 2, partitions=2)
        graph = stream.stateful(Meet, releases_gil=True).collect()
        assert feed(system.run(graph, batch_size=1), "x", range(20)) == list(range(20))
