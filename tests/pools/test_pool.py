"""Pools of processes: routing, sizes, and messages in flight at a crash."""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    DrainTimeout,
    Terminated,
)
from callboard.remote.errors import ConnectionLost, RemoteCallError
from callboard.routers import AutoScale, BroadcastRouter, KeyRouter, LeastLoadedRouter, Router
from tests.pools.conftest import LIMIT, letters
from tests.pools.workers import Broken, Odd, Work, noted
from tests.remote.conftest import eventually


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def pids(router: Router[Any]) -> set[int]:
    return {ref.ask("pid").result(LIMIT) for ref in router.refs}


def test_each_process_has_an_actor_of_its_own(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(partial(Work, str(tmp_path), factor=3), processes=2, name="work")
    assert pool.parent is not None
    assert pool.parent.path == "/work"
    assert "/work over 2 refs" in repr(pool)
    found = pids(pool)
    assert len(found) == 2
    assert os.getpid() not in found
    assert [pool.ask(number).result(LIMIT) for number in range(4)] == [0, 3, 6, 9]
    pool.stop()
    eventually(lambda: not any(map(is_running, found)), "the processes have ended")


def test_leaving_the_system_waits_until_all_is_handled(tmp_path: Path) -> None:
    with ActorSystem() as system:
        pool = system.pool(Work, str(tmp_path), processes=2)
        pool.tell_many(range(5_000))
        for number in range(5_000, 5_100):
            pool.tell(number)
        processes = pids(pool)
    assert system.dead_letters.count == 0
    assert not any(map(is_running, processes))
    parts = noted(tmp_path)
    assert all(part == sorted(part) for part in parts)
    assert sorted(number for part in parts for number in part) == [*range(5_100)]


def test_a_drain_waits_for_processes_that_are_only_starting(tmp_path: Path) -> None:
    with ActorSystem() as system:
        pool = system.pool(Work, str(tmp_path), processes=1)
        pool.atell(1)
        system.drain(LIMIT)
        assert noted(tmp_path) == [[1]]


def test_keys_have_their_processes(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=2, by="key")
    assert isinstance(pool, KeyRouter)
    pool.tell_many({"key": number % 10, "n": number} for number in range(200))
    system.drain(LIMIT)
    first, second = ({*part} for part in noted(tmp_path))
    assert first | second == {*range(10)}
    assert not first & second


@pytest.mark.parametrize("router", [LeastLoadedRouter, BroadcastRouter])
def test_other_routers_route_to_processes(system: ActorSystem, tmp_path: Path, router: Any) -> None:
    pool = system.pool(Work, str(tmp_path), processes=2, router=router)
    pool.tell_many(range(100))
    if router is BroadcastRouter:
        assert len({*pool.ask("pid").result(LIMIT)}) == 2
    system.drain(LIMIT)
    times = 2 if router is BroadcastRouter else 1
    found = Counter(number for part in noted(tmp_path) for number in part)
    assert found == dict.fromkeys(range(100), times)


class Feeder(Actor[Any]):
    """Tells and asks a pool."""

    def __init__(self, pool: Router[Any]) -> None:
        self.pool = pool

    async def receive(self, count: int) -> list[int]:
        for number in range(count):
            self.pool.tell(number)
        self.pool.tell_many(range(count, 2 * count))
        return [await self.pool.ask(number) for number in range(2 * count, 2 * count + 3)]


def test_actors_use_a_pool_and_never_wait_for_it(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1)
    feeder = system.spawn(Feeder, pool)
    assert feeder.ask(20_000).result(LIMIT) == [40_000, 40_001, 40_002]
    system.drain(LIMIT)
    assert noted(tmp_path) == [[*range(40_003)]]


def test_a_crash_fails_the_asks_in_flight_and_the_process_is_restarted(
    system: ActorSystem, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = letters(system)
    pool = system.pool(Work, str(tmp_path), processes=1, name="work")
    (before,) = pids(pool)
    asked = pool.ask("die")
    with pytest.raises(ConnectionLost, match="whether it was handled is unknown"):
        asked.result(LIMIT)
    (after,) = pids(pool)
    assert before != after
    pool.tell("die")
    eventually(lambda: [letter.message for letter in found] == ["die"], "a dead letter")
    assert found[0].reason == "lost"
    assert found[0].recipient is pool.parent
    assert isinstance(found[0].error, ConnectionLost)
    assert len({before, after, *pids(pool)}) == 3
    said = [record.getMessage() for record in caplog.records]
    assert any("/work/1" in line and "killed by signal 9" in line for line in said)


@pytest.mark.parametrize("seed", range(2))
def test_processes_killed_at_random_lose_nothing_silently(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    rows, kills = 8_000, 4
    with ActorSystem(drain_timeout=LIMIT) as system:
        found = letters(system)
        pool = system.pool(Work, str(tmp_path), processes=2)
        first = pids(pool)
        answers: list[Any] = []

        def send(thread: int) -> None:
            mine = [*range(thread * rows, (thread + 1) * rows)]
            while mine:
                count = chance.choice((1, 1, 7, 300))
                part, mine = mine[:count], mine[count:]
                if count == 7:
                    answers.extend((row, pool.ask(row)) for row in part)
                elif count == 1:
                    pool.tell(part[0])
                else:
                    pool.tell_many(part)

        def kill() -> None:
            killed: set[int] = set()
            for _ in range(kills):
                wanted = noted_count(tmp_path) + chance.randrange(200, 2_500)
                process = chance.choice(pool._family.processes)
                eventually(partial(kill_if, process, wanted, killed), "a process is killed")

        def kill_if(process: Any, wanted: int, killed: set[int]) -> bool:
            pid = process.pid
            if pid in {None, *killed} or not (noted_count(tmp_path) > wanted or all_sent()):
                return False
            killed.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return True

        with ThreadPoolExecutor(3) as threads:
            sending = [threads.submit(send, thread) for thread in range(2)]

            def all_sent() -> bool:
                return all(each.done() for each in sending)

            threads.submit(kill).result(LIMIT)
            for each in sending:
                each.result(LIMIT)
        system.drain(LIMIT)
        eventually(lambda: has_answers(pool), "the latest kill has been seen")
        last = pids(pool)
    handled = Counter(number for part in noted(tmp_path) for number in part)
    assert max(handled.values()) == 1
    lost = Counter(letter.message for letter in found)
    assert max(lost.values(), default=1) == 1
    failed = {row for row, answer in answers if isinstance(answer.exception(0), ConnectionLost)}
    assert {answer.exception(0).__class__ for _, answer in answers} <= {type(None), ConnectionLost}
    assert {*handled} | {*lost} | failed == {*range(2 * rows)}
    assert not {*lost} & {row for row, _ in answers}
    assert first != last


def has_answers(pool: Router[Any]) -> bool:
    """Tell whether all processes answer: of one that was killed just now it is not known yet."""
    with suppress(ConnectionLost):
        return bool(pids(pool))
    return False


def noted_count(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir()) // 5


def test_failures_and_answers_are_those_of_actors(system: ActorSystem, tmp_path: Path) -> None:
    found = letters(system)
    pool = system.pool(Work, str(tmp_path), processes=1)
    (before,) = pids(pool)
    with pytest.raises(RemoteCallError, match="ValueError: told to"):
        pool.ask("fail").result(LIMIT)
    pool.tell("fail")
    system.drain(LIMIT)
    assert [(letter.message, letter.reason) for letter in found] == [("fail", "failed")] * 2
    assert str(found[1].error) == "ValueError: told to"
    assert pids(pool) == {before}  # its actor was restarted, and the process stays
    pool.tell_many(["stop", 1, 2])
    eventually(lambda: not is_running(before), "the end of an actor is that of its process")
    eventually(lambda: has_answers(pool), "there is another process")
    assert len(pids(pool) - {before}) == 1
    left = {(letter.message, letter.reason) for letter in found[2:]}
    assert left <= {(n, reason) for n in (1, 2) for reason in ("stopped", "lost")}
    assert {number for number, _ in left} == {1, 2}


def test_an_actor_that_cannot_start_ends_the_pool_which_says_why(system: ActorSystem) -> None:
    pool = system.pool(Broken, processes=2, supervision="stop", name="broken")
    assert pool.parent is not None
    ended = pool.parent.ended
    with pytest.raises((ActorStopped, ConnectionLost)):
        pool.ask(1).result(LIMIT)
    end = ended.result(LIMIT)
    assert end.reason == "failed"
    assert "/broken gives up: its processes ended 3 times" in str(end)
    assert "failed to start: ValueError: it is broken" in str(end)
    with pytest.raises(ConnectionLost, match="/broken gives up"):
        pool.tell(1)
    with pytest.raises(CallboardError, match="has ended, and cannot be resized"):
        pool.resize(3)


def test_an_abandoned_ask_says_why(system: ActorSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    class OnlyHere(Work):
        __module__, __qualname__ = Work.__module__, "OnlyHere"

    monkeypatch.setattr("tests.pools.workers.OnlyHere", OnlyHere, raising=False)
    pool = system.pool(OnlyHere, "", processes=1, name="broken")
    with pytest.raises(ConnectionLost, match=r"/broken gives up.*tests.pools.workers has no Only"):
        pool.ask(1).result(LIMIT)


def test_a_failed_long_message_comes_back_whole(system: ActorSystem, tmp_path: Path) -> None:
    found = letters(system)
    pool = system.pool(Work, str(tmp_path), processes=1)
    long = {"key": "no number" * 1_000_000}  # the pipe takes 64 KiB at a time
    pool.tell_many(["fail", long, "fail"])
    system.drain(LIMIT)
    assert [letter.message for letter in found] == ["fail", long, "fail"]


class Watcher(Actor[Any]):
    def __init__(self, pool: Router[Any], told: list[Any]) -> None:
        self.told = told
        assert pool.parent is not None
        self.watch(pool.parent)

    def receive(self, message: Any) -> None:
        self.told.append(message)


def test_a_pool_can_be_watched(system: ActorSystem, tmp_path: Path) -> None:
    told: list[Any] = []
    pool = system.pool(Work, str(tmp_path), processes=1)
    system.spawn(Watcher, pool, told)
    system.drain(LIMIT)
    pool.stop()
    parent = pool.parent
    assert parent is not None
    eventually(lambda: told == [Terminated(parent)], "it is told")


def test_a_pool_is_resized_and_loses_nothing(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1)
    pool.tell_many(range(1_000))
    pool.resize(3)
    assert len(pids(pool)) == 3
    pool.tell_many(range(1_000, 3_000))
    pool.resize(1)
    pool.tell_many(range(3_000, 4_000))
    system.drain(LIMIT)
    eventually(lambda: len(pool._family.processes) == 1, "two have ended")
    assert system.dead_letters.count == 0
    assert sorted(number for part in noted(tmp_path) for number in part) == [*range(4_000)]
    with pytest.raises(ValueError, match="the number of processes"):
        pool.resize(0)


def test_an_elastic_pool_grows_and_shrinks(system: ActorSystem, tmp_path: Path) -> None:
    elastic = AutoScale(1, 3, period=0.01, after_looks=2)
    pool = system.pool(Work, str(tmp_path), elastic=elastic)
    assert len(pool.refs) == 1
    (first,) = pids(pool)

    def has_grown() -> bool:
        refs: tuple[Any, ...] = pool.refs
        if sum(ref.queue_length for ref in refs) < 20:  # it shrinks when nothing waits
            pool.tell(["sleep", 0.05])
        return len(refs) == 3

    eventually(has_grown, "it has grown")
    eventually(lambda: len(pool._family.processes) == 1, "it has shrunk")
    assert pids(pool) == {first}
    system.drain(LIMIT)
    assert system.dead_letters.count == 0
    with pytest.raises(TypeError, match="expected an AutoScale or a pair"):
        system.pool(Work, str(tmp_path), elastic=3)


def test_a_drain_that_times_out_names_the_process_that_it_waits_for(tmp_path: Path) -> None:
    with ActorSystem() as system:
        pool = system.pool(Work, str(tmp_path), processes=1, name="work")
        (process,) = pids(pool)
        eventually(lambda: pool._family.processes[0].was_ready, "it says that it has started")
        assert system.why_waiting().of("/work/1").reason == "no input"
        pool.tell(["sleep", 3_600])
        words = rf"/work/1 \(process number {process}\) has not handled a message"
        with pytest.raises(DrainTimeout, match=words):
            system.drain(0.01)
        assert system.why_waiting().of("/work/1").reason == "process"
        pool.stop()


def test_stopping_a_pool_after_its_queue(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=2)
    pool.tell_many(range(1_000))
    pool.stop(after_queue=True)
    parent = pool.parent
    assert parent is not None
    eventually(lambda: not parent.is_alive and not system.actors, "it has ended")
    assert sorted(number for part in noted(tmp_path) for number in part) == [*range(1_000)]


def test_a_stop_makes_dead_letters_of_what_was_not_handled(tmp_path: Path) -> None:
    system = ActorSystem()
    found = letters(system)
    pool = system.pool(Work, str(tmp_path), processes=1)
    (process,) = pids(pool)
    pool.tell(["sleep", 3_600])
    pool.tell_many(range(10))
    asked = pool.ask(10)
    system.stop()
    assert not is_running(process)
    assert [letter.message for letter in found] == [["sleep", 3_600], *range(10)]
    assert {letter.reason for letter in found} == {"lost"}
    assert isinstance(asked.exception(LIMIT), ConnectionLost)


def test_a_stop_ends_the_wait_for_a_full_process(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1)
    pool.tell(["sleep", 3_600])
    with ThreadPoolExecutor(1) as threads:
        telling = threads.submit(pool.tell_many, range(100_000))
        ref: Any = pool.refs[0]
        eventually(lambda: ref.queue_length > 10_000, "it has no more credit")
        pool.stop()
        with pytest.raises(ConnectionLost):
            telling.result(LIMIT)


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    def count() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def use() -> None:
        before = set(threading.enumerate())
        with ActorSystem() as system:
            pool = system.pool(Work, str(tmp_path), processes=1)
            pool.ask(1).result(LIMIT)
            pool.tell("die")
        for thread in set(threading.enumerate()) - before:
            thread.join(LIMIT)

    use()
    before = count()
    use()
    assert count() == before


def test_a_message_fails_once_if_its_process_ends(system: ActorSystem, tmp_path: Path) -> None:
    found = letters(system)
    pool = system.pool(Work, str(tmp_path), processes=1)
    pool.tell_many(["fail", 1, "fail", "die", "after"])  # acknowledged together, and so not at all
    system.drain(LIMIT)
    reasons = sorted((str(letter.message), letter.reason) for letter in found)
    lost = [("1", "lost"), ("after", "lost"), ("die", "lost")]
    assert reasons == [*lost, ("fail", "failed"), ("fail", "failed")]


def test_an_ended_process_loses_messages_once(system: ActorSystem, tmp_path: Path) -> None:
    found = letters(system)
    mailbox = BoundedMailbox(3, "fail")
    pool = system.pool(Work, str(tmp_path), processes=1, mailbox=mailbox)
    pool.tell_many(["die", *range(9)])
    system.drain(LIMIT)
    assert Counter(letter.message for letter in found) == Counter(["die", *range(9)])
    assert {letter.reason for letter in found} <= {"refused", "lost"}  # it may end at once


def test_a_place_serves_again_though_a_forked_child_lives_on(system: ActorSystem) -> None:
    """The child has a copy of all that was open in the process which has ended."""
    pool = system.pool(Odd, processes=1)
    child = pool.ask("fork").result(LIMIT)
    try:
        with pytest.raises(ConnectionLost):
            pool.ask("end").result(LIMIT)
        assert pool.ask("again").result(LIMIT) == "again"
        assert is_running(child)
    finally:
        os.kill(child, signal.SIGKILL)
