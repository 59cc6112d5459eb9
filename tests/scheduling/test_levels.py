"""Workers that are suspended and resumed while actors and graphs run."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import Actor, ActorSystem
from callboard.core.errors import CallboardError
from callboard.observing import FlightRecorder
from callboard.scheduling.placement import Fixed
from callboard.testing import ManualSystem
from tests.observing.text_traces import recorded
from tests.streams.random_graphs import Case, cases
from tests.streams.test_random_runs import feed
from tests.tokenless import tokenless


@contextmanager
def changing(system: ActorSystem, seed: int) -> Iterator[None]:
    """Set the system's level at random, over and over."""
    ended = threading.Event()
    numbers = random.Random(seed)
    team = system._runtime.team

    def change() -> None:
        while not ended.is_set():
            team.set_level(numbers.randint(1, len(team.workers)))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Hop(Actor[Any]):
    """Sends each number on, less one."""

    def __init__(self) -> None:
        self.following: Any = None
        self.handled = 0

    def receive(self, message: Any) -> Any:
        if message == "handled":
            return self.handled
        if not isinstance(message, int):
            self.following = message
            return None
        self.handled += 1
        if message:
            self.following.tell(message - 1)
        return None


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("workers", [2, 4])
def test_messages_are_handled_once_at_levels_that_change(workers: int, placed: bool) -> None:
    with tokenless(workers=workers) as system, changing(system, workers):
        options = [{"placement": Fixed(i % workers)} if placed else {} for i in range(20)]
        actors = [system.spawn(Hop, **each) for each in options]
        for actor, following in zip(actors, actors[1:] + actors[:1], strict=True):
            actor.tell(following)
        for actor in actors:
            actor.tell(500)
        system.drain(60)
        assert sum(actor.ask("handled").result(60) for actor in actors) == 20 * 501


@given(case=cases(), seed=st.integers(0, 10_000), workers=st.integers(2, 4))
@settings(max_examples=60)
def test_graphs_are_sequential_at_changing_levels(case: Case, seed: int, workers: int) -> None:
    expected = case.graph.run_sequentially(case.inputs)
    with ActorSystem(workers=workers) as system, changing(system, seed):
        run = system.run(case.graph, batch_size=2, window=4)
        assert feed(run, case.row_by_row()) == expected


@given(case=cases(), seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_graphs_without_a_token_do_too(case: Case, seed: int) -> None:
    expected = case.graph.run_sequentially(case.inputs)
    with tokenless(workers=3) as system, changing(system, seed):
        run = system.run(case.graph, batch_size=2, window=4)
        assert feed(run, case.row_by_row()) == expected


@given(case=cases(), seed=st.integers(0, 10_000), levels=st.lists(st.integers(1, 3), min_size=1))
def test_graphs_under_a_seed_do_too(case: Case, seed: int, levels: list[int]) -> None:
    expected = case.graph.run_sequentially(case.inputs)
    with ManualSystem(seed) as system:
        run = system.run(case.graph, batch_size=2, window=4)
        for turn, (name, rows) in enumerate(case.row_by_row().inputs):
            run._work.flow.follow(levels[turn % len(levels)])
            run.send(name, rows, timeout=60)
        assert run.finish(timeout=60) == expected


class Where(Actor[Any]):
    def receive(self, message: Any) -> str:
        return threading.current_thread().name


def test_a_suspended_workers_actors_run_elsewhere_and_come_back() -> None:
    with ActorSystem("where", workers=3) as system:
        team = system._runtime.team
        actor = system.spawn(Where, placement=Fixed(2))
        system.spawn(Where, placement=Fixed(1)).ask("").result(30)
        if team.token:
            pytest.skip("the token's owner runs all Python actors")
        for level, name in ((3, "where-2"), (2, "where-0"), (1, "where-0"), (3, "where-2")):
            system.drain(30)  # a dispatch may take the next message, too, before it ends
            team.set_level(level)
            assert actor.ask("").result(30) == name


def test_suspended_workers_are_idle_and_the_system_ends_with_them() -> None:
    with tokenless(workers=4) as system:
        team = system._runtime.team
        team.set_level(1)
        actors = [system.spawn(Where) for _ in range(50)]
        assert {actor.ask("").result(30) for actor in actors} == {"callboard-0"}
        assert team.wait_until_idle(30)  # the others may still be on their way to sleep
        assert team.lagging == []
    threads = [worker.thread for worker in team.everyone]
    assert all(thread is not None and not thread.is_alive() for thread in threads)


def test_traces_have_a_workers_suspensions() -> None:
    recorder = FlightRecorder(seconds=3600)
    with tokenless(workers=2, monitoring="workers", trace=recorder) as system:
        team = system._runtime.team
        actor = system.spawn(Where, placement=Fixed(1))
        lines: list[str] = []
        deadline = time.monotonic() + 60
        while len(lines) < 2:  # it may be resumed before it has come to rest
            assert time.monotonic() < deadline
            for level in (1, 2):
                system.drain(30)
                team.set_level(level)
                assert actor.ask("").result(30) == f"callboard-{level - 1}"
            lines = [line for line in recorded(system) if "callboard-1 was suspended" in line]
    assert [line.split(" for ")[0].split(" ", 1)[1] for line in lines][:2] == [
        "*** callboard-1 was suspended (1)",
        "*** callboard-1 was suspended (2)",
    ]


class Blocked(Actor[Any]):
    def receive(self, message: Any) -> None:
        began, gate = message
        began.set()
        gate.wait(60)


def test_a_worker_in_a_dispatch_lags_until_that_ends() -> None:
    began, gate = threading.Event(), threading.Event()
    with tokenless(workers=2) as system:
        team = system._runtime.team
        blocked = system.spawn(Blocked, placement=Fixed(1))
        blocked.tell((began, gate))
        assert began.wait(30)
        team.set_level(1)
        assert [worker.name for worker in team.lagging] == ["callboard-1"]
        assert system.spawn(Where).ask("").result(30) == "callboard-0"
        gate.set()
        system.drain(30)
        assert team.lagging == []


def test_a_level_without_threads_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with tokenless(workers=(1, 3)) as system:
        team = system._runtime.team
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(CallboardError, match="only 1 of 3 workers could be started"):
                team.set_level(2)
        assert team.level == 1
        team.set_level(2)
        assert {worker.name for worker in team.everyone} == {"callboard-0", "callboard-1"}
