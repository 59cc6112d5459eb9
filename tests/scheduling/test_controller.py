"""The controller of the level of workers: its measurements, decisions and events."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.core.errors import ConfigError
from callboard.core.threads.interpreter import has_gil
from callboard.scheduling.elasticity.controller import PYTHON_ONLY
from callboard.scheduling.elasticity.decision import Decision
from callboard.scheduling.elasticity.measurement import Measurement
from callboard.scheduling.elasticity.work_counts import WorkDone
from callboard.scheduling.placement import Fixed
from callboard.streams import entry
from tests.remote.conftest import eventually
from tests.tokenless import tokenless
from tests.waiting import until

LONG = {"period": 1e6}  # the test looks, and nobody else


class Script:
    """A strategy that decides what the test wants, and remembers what it is told."""

    def __init__(self, *levels: int) -> None:
        self.levels = list(levels)
        self.seen: list[Measurement] = []

    def decide(self, measurement: Measurement) -> Decision:
        self.seen.append(measurement)
        level = self.levels.pop(0) if self.levels else measurement.level
        return Decision(level, f"The script says {level}.")


def scripted(system: ActorSystem, *levels: int) -> tuple[Any, Script]:
    script = Script(*levels)
    controller: Any = system._runtime.team.controller
    controller._strategy = script
    return controller, script


class Counter(Actor[Any]):
    def __init__(self) -> None:
        self.count = 0

    def receive(self, message: Any) -> int:
        self.count += 1
        return self.count


def test_a_change_has_its_reason_its_time_and_an_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with tokenless("shop", workers=(1, 4), config={"elasticity": LONG}) as system:
        controller, _ = scripted(system, 3, 3, 2)
        for _ in range(3):
            controller.look()
        statistics = system.statistics().level
        assert statistics is not None
        assert (statistics.level, statistics.least, statistics.most) == (2, 1, 4)
        assert [(change.before, change.level) for change in statistics.changes] == [(1, 3), (3, 2)]
        assert [change.reason for change in statistics.changes] == [
            "The script says 3.",
            "The script says 2.",
        ]
        assert all(change.took >= 0 and change.time >= 0 for change in statistics.changes)
        assert "2 of 4 workers run. The script says 2." in str(system.statistics())
    changes = [each for each in caplog.messages if each.startswith("the level of workers changes")]
    assert [each.split(" seconds=")[0] for each in changes] == [
        "the level of workers changes system=shop before=1 level=3 reason=The script says 3.",
        "the level of workers changes system=shop before=3 level=2 reason=The script says 2.",
    ]


def test_messages_and_rows_are_what_was_handled_in_the_period() -> None:
    with tokenless(workers=(1, 2), config={"elasticity": LONG}) as system:
        controller, script = scripted(system)
        counter = system.spawn(Counter)
        for _ in range(100):
            counter.tell(1)
        system.drain(30)
        controller.look()
        first = script.seen[0]
        assert first.throughput * first.seconds == pytest.approx(100)
        assert first.stages == ()
        run = system.run(entry("x", int).map(abs, name="abs").filter(bool, name="some").collect())
        run.send("x", range(50))
        run.finish(timeout=30)
        run = system.run(entry("x", int).map(abs, name="abs").collect())
        run.send("x", range(1000))
        assert run._work.flow.wait_until_done(run._work.flow.admitted, 30.0)
        system.drain(30)  # a lane counts its rows after it has handed them on
        controller.look()
        loads = {load.name: load for load in script.seen[1].stages}
        assert loads["abs"].rows * script.seen[1].seconds == pytest.approx(1000)
        assert loads["abs"].cost > 0
        controller.look()
        assert {load.rows for load in script.seen[2].stages} == {0}
        run.finish(timeout=30)
        controller.look()
        assert script.seen[3].stages == ()


def test_a_measurement_is_of_the_work_that_was_done() -> None:
    done = WorkDone(2.0, messages=30, rows=70.0, busy=3.0, starved=5.0, held_back=1.0)
    done.waiting, done.backlog = 8.0, 2.0
    with tokenless(workers=(2, 2), config={"elasticity": LONG}) as system:
        controller, script = scripted(system)
        controller._counts = SimpleNamespace(take=lambda team: done)
        controller.look()
    (seen,) = script.seen
    assert (seen.level, seen.seconds, seen.throughput) == (2, 2.0, 50.0)
    assert (seen.busy, seen.starved, seen.held_back) == (1.5, 1.5, 0.5)
    assert (seen.waiting, seen.waiting_cost) == (8.0, 0.25)


def test_a_sender_that_waits_for_room_is_seen_for_as_long_as_it_waits() -> None:
    gate = threading.Event()

    def wait(row: int) -> int:
        gate.wait(60)
        return row

    with tokenless(workers=(1, 2), config={"elasticity": LONG}) as system:
        controller, script = scripted(system)
        run = system.run(entry("x", int).map(wait).collect(), batch_size=1, window=2)
        controller.look()
        sender = threading.Thread(target=run.send, args=("x", range(4)))
        sender.start()
        flow = run._work.flow
        try:
            eventually(lambda: flow.held_back_ns > 0, "it waits for room")
            assert script.seen[0].held_back == 0.0

            def is_seen() -> bool:  # this thread may be held up between its two clocks
                waited = flow.held_back_ns
                controller.look()
                eventually(lambda: flow.held_back_ns > waited + 100_000_000, "it waits for 0.1 s")
                controller.look()
                return script.seen[-1].held_back == pytest.approx(1.0, abs=0.1)

            eventually(is_seen, "a period in which it waited throughout")
        finally:
            gate.set()
            sender.join(60)
        assert run.finish(timeout=60) == [0, 1, 2, 3]
        run = system.run(entry("x", int).map(abs).collect())
        for _ in range(2):
            controller.look()
        assert script.seen[-1].held_back == 0.0
        run.finish(timeout=60)


def test_an_idle_system_is_not_busy_and_one_that_works_is() -> None:
    began, gate = threading.Event(), threading.Event()

    class Waiting(Actor[None]):
        def receive(self, message: None) -> None:
            began.set()
            gate.wait(60)

    with tokenless(workers=(1, 2), config={"elasticity": LONG}) as system:
        controller, script = scripted(system)
        assert system.spawn(Counter).ask(1).result(30) == 1  # the worker's thread runs
        system.drain(30)
        for _ in range(20):
            controller.look()
        assert min(seen.busy for seen in script.seen) < 0.5
        system.spawn(Waiting).tell(None)
        assert began.wait(30)
        controller.look()  # in its period the message began
        controller.look()
        assert script.seen[-1].busy == pytest.approx(1.0)
        gate.set()


def test_rows_wait_before_an_operator_only_if_they_are_for_it() -> None:
    with tokenless(workers=(1, 2), config={"elasticity": LONG}) as system:
        controller, script = scripted(system)
        began, gate = threading.Event(), threading.Event()

        def hold(row: int) -> int:
            if row < 0:
                began.set()
                gate.wait(60)
            return row

        branches = [entry(f"{i}", int).map(abs, name=f"branch {i}") for i in range(10)]
        last = entry("last", int).map(hold, name="hold")
        run = system.run(last.union(*branches).collect(), batch_size=100, window=64)
        for i in range(10):
            run.send(f"{i}", range(100))
        assert run._work.flow.wait_until_done(run._work.flow.admitted, 30.0)
        run.send("last", [-1])
        assert began.wait(30)
        for i in range(10):
            run.send(f"{i}", range(100))
        controller.look()
        waiting = sum(load.waiting for load in script.seen[-1].stages)
        gate.set()
        run.finish(timeout=30)
        assert waiting <= 2 * 1_101


def test_a_worker_that_lags_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    began, gate = threading.Event(), threading.Event()

    class Stuck(Actor[None]):
        def receive(self, message: None) -> None:
            began.set()
            gate.wait(60)

    with tokenless(workers=(1, 2), config={"elasticity": LONG}) as system:
        controller, script = scripted(system, 2, 1)
        controller.look()
        system.spawn(Stuck, name="stuck", placement=Fixed(1)).tell(None)
        assert began.wait(30)
        controller.look()
        controller.look()
        controller.look()
        assert script.seen[2].stuck == ("callboard-1, in /stuck",)
        gate.set()
    (told,) = [each for each in caplog.messages if "cannot be suspended" in each]
    assert "worker=callboard-1 actor=/stuck" in told
    assert "gate.wait(60)" in told


@pytest.mark.skipif(not has_gil(), reason="Python runs on all workers")
def test_with_a_lock_and_python_alone_there_is_one_worker_and_no_trial() -> None:
    with ActorSystem(workers=(1, 4), config={"elasticity": LONG}) as system:
        controller, script = scripted(system, 4)
        assert system.spawn(Counter).ask(1).result(30) == 1
        controller.look()
        level = system.statistics().level
        assert level is not None
        assert level.level == 1
        assert level.reason == PYTHON_ONLY
        assert script.seen == []
        assert len(system.statistics().workers) == 1  # the others have no threads


def level_threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"{name}-level"]


def test_a_failing_strategy_is_told_and_the_level_stays(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        def decide(self, measurement: Measurement) -> Decision:
            raise ZeroDivisionError

    with tokenless("fails", workers=(2, 3), config={"elasticity": {"period": 0.001}}) as system:
        team: Any = system._runtime.team
        team.controller._strategy = Failing()
        until(lambda: not level_threads("fails"))
        level = system.statistics().level
        assert level is not None
        assert level.level == 2
        assert "the strategy failed with ZeroDivisionError" in level.reason
    assert "the level of workers does not change: its strategy failed system=fails" in caplog.text


def test_the_thread_ends_with_the_system() -> None:
    with ActorSystem("ending", workers="elastic"):
        assert len(level_threads("ending")) == 1
    until(lambda: not level_threads("ending"))


def test_a_system_that_is_garbage_ends_its_thread() -> None:
    system = ActorSystem("garbage", workers="elastic")
    gone = weakref.ref(system)
    del system
    gc.collect()
    assert gone() is None
    until(lambda: not level_threads("garbage"))


def test_a_fixed_number_of_workers_has_no_level() -> None:
    with ActorSystem(workers=2) as system:
        assert system.statistics().level is None
        assert not level_threads("callboard")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"workers": "many"},
            "workers must be a whole number .*, 'elastic', or a range .*, got 'many'",
        ),
        ({"workers": (4, 2)}, "a range of workers must be .least, most., got 4, which is above 2"),
        ({"workers": (0, 2)}, "the least workers must be a whole number from 1 to 1024, got 0"),
        ({"workers": (1, 2, 3)}, r"a range of workers must be .least, most., got \(1, 2, 3\)"),
        (
            {"workers": (1, 5000)},
            "the most workers must be a whole number from 1 to 1024, got 5000",
        ),
        ({"workers": 2, "elasticity": {}}, "elasticity needs workers='elastic'.*, got 2"),
        ({"elasticity": {}}, "elasticity needs .*, got one for each core"),
        ({"workers": "elastic", "placement": "balanced"}, "workers is 'elastic', which needs"),
        (
            {"workers": "elastic", "elasticity": {"period": 0}},
            "elasticity's period must be .*, got 0",
        ),
        ({"workers": "elastic", "elasticity": {"ceiling": 101}}, "from 0 to 1 .*, got 101"),
        ({"workers": "elastic", "elasticity": {"ceiling": -1}}, "from 0 to 1 .*, got -1"),
        ({"workers": "elastic", "elasticity": {"ceiling": float("nan")}}, "got nan"),
        ({"workers": "elastic", "elasticity": {"pace": 1}}, "no setting 'pace' of elasticity"),
        ({"workers": "elastic", "elasticity": 3}, "elasticity must be a table, got 3"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ActorSystem(config=options)


def test_a_configuration_file_has_the_range_and_the_options(tmp_path: Any) -> None:
    path = tmp_path / "callboard.toml"
    path.write_text("workers = [1, 3]\n[elasticity]\nperiod = 10\nceiling = 0.5\n")
    with ActorSystem(workers=2, config=path) as system:
        config = system.config
        assert (config.least_workers, config.workers) == (1, 3)
        assert config.elasticity is not None
        assert config.elasticity.period == 10
        assert config.elasticity.ceiling == 0.5
