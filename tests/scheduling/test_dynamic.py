"""Dynamic threading: actors that no policy placed, on workers that take each other's work."""

import os
import sysconfig
import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, CallboardError, ConfigError
from callboard.core.threads.cores import usable_cores
from callboard.policies import Fixed, PolicyError, PriorityPolicy, RoundRobin
from callboard.scheduling.config import Config
from tests.scheduling.conftest import Hold
from tests.tokenless import tokenless

HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")


class Worker(Actor[Any]):
    """Says which thread runs it."""

    def receive(self, message: Any) -> str:
        return threading.current_thread().name


class Meeting(Actor[threading.Barrier]):
    """Meets others, each on a thread of its own, or the barrier breaks."""

    def receive(self, message: threading.Barrier) -> None:
        message.wait(30)


class Convener(Actor[tuple[threading.Barrier, list[ActorRef[Any]]]]):
    """Wakes others and stays in its message until they have come."""

    def receive(self, message: tuple[threading.Barrier, list[ActorRef[Any]]]) -> None:
        barrier, others = message
        for other in others:
            other.tell(barrier)
        barrier.wait(30)


# --- what moves -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "priority", ["fifo", "two_level", "weighted", "shortest_first", "longest_queue"]
)
def test_whom_a_handler_wakes_does_not_wait_for_its_end(priority: str) -> None:
    # Without the token several workers run Python actors. Each barrier is passed only if others
    # take what the first one woke, out of its ready set, while it is in the middle of its message.
    with tokenless(workers=3, priority=priority) as system:
        convener = system.spawn(Convener)
        others = [system.spawn(Meeting) for _ in range(2)]
        for _ in range(20):
            barrier = threading.Barrier(3)
            convener.tell((barrier, list(others)))
            system.drain()
            assert not barrier.broken
        assert not system.dead_letters.count


def test_messages_from_outside_do_not_wait_for_a_handlers_end() -> None:
    with tokenless(workers=2) as system:
        actors = [system.spawn(Meeting) for _ in range(6)]
        for first in actors:
            for second in actors:
                if first is not second:
                    barrier = threading.Barrier(2)
                    first.tell(barrier)
                    second.tell(barrier)
                    system.drain()
                    assert not barrier.broken


def test_an_actor_that_was_placed_stays() -> None:
    with tokenless("stay", workers=3) as system:
        placed = system.spawn(Worker, placement=Fixed(2))
        assert {placed.ask("where").result(30) for _ in range(50)} == {"stay-2"}


def test_a_woken_actor_runs_where_its_waker_runs(hold: Hold) -> None:
    class Chain(Actor[int]):
        def __init__(self, following: ActorRef[int] | None) -> None:
            self.following = following

        def receive(self, message: int) -> None:
            names.append(threading.current_thread().name)
            if self.following is not None:
                self.following.tell(message)
            else:
                over.set()

    names: list[str] = []
    over = threading.Event()
    with tokenless("near", workers=2) as system:
        following = None
        for _ in range(5):
            following = system.spawn(Chain, following)
        first = system.spawn(Chain, following, placement=Fixed(1))
        with hold(system, Fixed(0)):  # so that nobody steals
            first.tell(0)
            assert over.wait(30)
    assert names == ["near-1"] * 6


def test_a_policy_in_python_keeps_what_its_worker_has() -> None:
    class Mine(PriorityPolicy):
        def __init__(self) -> None:
            self.threads: set[str] = set()
            self.ready: list[Any] = []

        def put_ready(self, actor: Any) -> None:
            self.threads.add(threading.current_thread().name)
            self.ready.append(actor)

        def fetch_ready(self) -> Any:
            self.threads.add(threading.current_thread().name)
            return self.ready.pop(0)

    with tokenless(workers=3, priority=Mine) as system:
        actors = [system.spawn(Worker) for _ in range(20)]
        for _ in range(100):
            for actor in actors:
                actor.tell(0)
        system.drain()
        for worker in system._runtime.team.workers:
            assert worker.policy.threads <= {worker.name}  # type: ignore[attr-defined]


# --- workers and their threads -------------------------------------------------------------------


@pytest.mark.skipif(not HAS_GIL, reason="without a GIL all workers can run Python actors")
def test_workers_that_could_only_wait_for_the_gil_have_no_thread() -> None:
    with ActorSystem("lazy", workers=4) as system:
        where = system.spawn(Worker).ask("where").result(30)
        assert where == "lazy-0"
        assert [thread.name for thread in threading.enumerate() if "lazy" in thread.name] == [where]
        assert [worker.name for worker in system.statistics().workers] == [where]
        placed = system.spawn(Worker, placement=Fixed(3))
        placed.ask("where").result(30)
        assert len(system.statistics().workers) == 4
    assert [thread.name for thread in threading.enumerate() if "lazy" in thread.name] == []


@pytest.mark.skipif(not HAS_GIL, reason="without a GIL all threads are there from the start")
def test_a_dedicated_spawn_without_a_thread_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with ActorSystem(workers=2) as system:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(CallboardError, match="only 1 of 2 workers could be started"):
                system.spawn(Worker, placement=Fixed(1))
        assert system.actors == []
        system.drain()  # until then the first worker has the token
        assert system.spawn(Worker, placement=Fixed(1)).ask("where").result(30) == "callboard-1"


@pytest.mark.skipif(HAS_GIL, reason="with a GIL the others begin when there is something for them")
def test_all_workers_have_a_thread_from_the_start() -> None:
    with ActorSystem(workers=4) as system:
        assert len(system.statistics().workers) == 4


def test_a_system_has_a_worker_for_each_core_that_it_may_use(monkeypatch: Any) -> None:
    monkeypatch.setattr("callboard.scheduling.config.usable_cores", usable_cores)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)))
    monkeypatch.setattr("callboard.core.threads.cores._control_groups", list)
    assert Config.load().workers == 3


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "config", "threading_model", "placement"),
    [
        ({}, None, "dynamic", "round_robin"),
        ({"placement": "balanced"}, None, "assigned", "balanced"),
        ({"threading": "assigned"}, None, "assigned", "round_robin"),
        ({"placement": "balanced"}, {"threading": "dynamic"}, "dynamic", "round_robin"),
        ({"threading": "dynamic"}, {"placement": "balanced"}, "assigned", "balanced"),
    ],
)
def test_a_placement_assigns_and_the_configuration_wins(
    keywords: Any, config: Any, threading_model: str, placement: str
) -> None:
    loaded = Config.load(config, **keywords)
    assert (loaded.threading, loaded.placement) == (threading_model, placement)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"threading .*dynamic.*assigned.*'manual'"):
        ActorSystem(threading="manual")


def test_a_placement_is_refused_where_threading_is_dynamic() -> None:
    with pytest.raises(ConfigError, match=r"placement is <RoundRobin>, and threading is 'dynamic'"):
        ActorSystem(workers=2, threading="dynamic", placement=RoundRobin())


def test_nothing_can_be_arranged_where_threading_is_dynamic() -> None:
    with ActorSystem("loose", workers=2) as system:
        with pytest.raises(PolicyError, match=r"'loose' cannot be arranged by <Fixed>"):
            system.rebalance(Fixed(1))
        free = tokenless("free", workers=2)
        with free:
            unpinned = free.spawn(Worker)
            worker = unpinned.worker
            assert worker is not None
            with pytest.raises(PolicyError, match="it runs where it is woken"):
                worker.take_over(unpinned)
