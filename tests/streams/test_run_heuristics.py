"""Heuristics that choose the next operator of a run, and throttled runs."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.errors import ConfigError
from callboard.streams import Heuristic, entry
from callboard.streams.running.build import PythonLane
from callboard.testing import ManualSystem
from tests.streams.summing import ROWS, feed, shape
from tests.waiting import until


@pytest.fixture(params=[1, 2, 4], ids="{}-workers".format)
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    with ActorSystem(workers=request.param) as system:
        yield system


class Earliest(Heuristic):
    def choose(self, operators: Any) -> Any:
        assert all(operator.queued > 0 for operator in operators)
        return operators[0]


def test_a_heuristic_of_ones_own_chooses(system: ActorSystem) -> None:
    run = system.run(shape(), policy=Earliest())
    run.send("numbers", ROWS)
    assert run.finish(timeout=60) == shape().run_sequentially({"numbers": ROWS})


def test_a_heuristic_that_fails_is_given_up_and_the_run_goes_on(system: ActorSystem) -> None:
    class Broken(Heuristic):
        def choose(self, operators: Any) -> Any:
            return "nonsense"

    run = system.run(shape(), policy=Broken(), batch_size=5)
    run.send("numbers", ROWS)
    assert run.finish(timeout=60) == shape().run_sequentially({"numbers": ROWS})


def test_a_failed_heuristic_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Heuristic):
        calls = 0

        def choose(self, operators: Any) -> Any:
            self.calls += 1
            if self.calls == 1:  # another lane asks, too
                run._work.flow.help([0])
            raise LookupError

    heuristic = Broken()
    with ManualSystem() as system:
        run = system.run(shape(), policy=heuristic, batch_size=5)
        run.send("numbers", ROWS)
        assert run.finish() == shape().run_sequentially({"numbers": ROWS})
    assert heuristic.calls == 2
    (record,) = [record for record in caplog.records if record.name == "callboard"]
    assert "a heuristic failed" in record.getMessage()


def test_a_configuration_may_have_a_heuristic_of_ones_own_for_graphs() -> None:
    with ActorSystem(config={"streams": {"policy": Earliest}}) as system:
        run = system.run(shape())
        run.send("numbers", ROWS)
        assert run.finish(timeout=60) == shape().run_sequentially({"numbers": ROWS})


def test_a_heuristic_without_choose_is_refused(system: ActorSystem) -> None:
    class Empty(Heuristic):
        pass

    with pytest.raises(ConfigError, match="has no method `choose`"):
        system.run(shape(), policy=Empty())


def test_a_priority_policy_is_not_a_heuristic(system: ActorSystem) -> None:
    with pytest.raises(ConfigError, match=r"no policy 'fifo'; there are .*last_in_pipeline"):
        system.run(shape(), policy="fifo")


# --- throttling ---------------------------------------------------------------------------------


def test_a_throttled_run_takes_its_time() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x", int).throttle(500).collect(), batch_size=1)
        begun = time.monotonic()
        assert feed(run, "x", range(51)) == list(range(51))
        assert time.monotonic() - begun >= 50 / 500


def test_a_lane_that_rests_has_one_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = itertools.count()
    receive = PythonLane.receive

    def counted(lane: PythonLane, message: object) -> None:
        next(turns)
        receive(lane, message)

    monkeypatch.setattr(PythonLane, "receive", counted)
    with ActorSystem() as system:
        run = system.run(entry("x", int).throttle(500).collect(), batch_size=1)
        for n in range(50):
            run.send("x", [n])
            # The lane was woken, and rests again.
            until(
                lambda: all(
                    lane.info().waits_for == "a message" for lane in run._work.deployment.lanes
                )
            )
        run.finish(timeout=60)
    assert next(turns) < 200


def test_cancel_does_not_wait_until_a_throttled_operator_has_rested() -> None:
    came = threading.Event()
    with ActorSystem() as system:
        graph = entry("x", int).throttle(0.001).to(lambda _: came.set())
        run = system.run(graph, batch_size=1)
        run.send("x", [1, 2, 3])
        assert came.wait(60)
        run.cancel(timeout=60)
        statistics = run.statistics()
        assert statistics.rounds == statistics.rounds_done


def test_throttling_does_not_hold_up_a_manual_system() -> None:
    with ManualSystem(max_steps=1000) as system:
        run = system.run(entry("x", int).throttle(1).collect(), batch_size=1)
        assert feed(run, "x", range(10)) == list(range(10))


def test_workers_follow_slow_rows_to_the_operator_behind() -> None:
    begun: list[str] = []
    pause, behind = threading.Event(), threading.Event()

    def slow(row: int) -> int:
        begun.append("slow")
        pause.wait(0.005)  # longer than a turn
        if row == 50:
            behind.wait(30)  # where a worker may be late
        return row

    def quick(row: int) -> int:
        begun.append("quick")
        behind.set()
        return row

    graph = entry("x").map(slow, releases_gil=True).map(quick, releases_gil=True).collect()
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=1)
        run.send("x", range(100))
        assert run.finish(timeout=60) == [*range(100)]
    assert begun.index("quick") < 90  # it came after all of the slow ones
