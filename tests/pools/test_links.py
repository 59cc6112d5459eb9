"""The channel between a program and a process of a pool: order, sizes, nonsense, interruptions."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, AskTimeout, BoundedMailbox, CallboardError
from callboard.remote.errors import ConnectionLost
from tests.pools.conftest import LIMIT, letters
from tests.pools.workers import Double, Odd, Work, noted
from tests.remote.conftest import eventually

LONG = 5 << 20  # bytes; more than the memory of a channel


def test_five_hundred_asks_in_flight_are_handled_and_answered_in_order(
    system: ActorSystem, tmp_path: Path
) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1)
    done: list[int] = []
    for _ in range(3):
        asked = [pool.ask(number) for number in range(500)]
        for answer in asked:
            answer.add_done_callback(lambda answer: done.append(answer.result(0)))
        assert [answer.result(LIMIT) for answer in asked] == [*range(500)]
    assert noted(tmp_path) == [[*range(500)] * 3]
    assert done == [*range(500)] * 3


def test_answers_come_though_no_thread_waits_for_them(system: ActorSystem) -> None:
    pool = system.pool(Double, processes=1)
    came: list[int] = []
    last = threading.Event()

    def note(answer: Any) -> None:
        came.append(answer.result(0))
        if len(came) == 200:
            last.set()

    for number in range(100):
        assert pool.ask(number).result(LIMIT) == 2 * number  # this thread receives
        pool.ask(number).add_done_callback(note)
    for number in range(100):
        pool.ask(number).add_done_callback(note)
    assert last.wait(LIMIT)
    assert sorted(came) == sorted([2 * number for number in range(100)] * 2)


def test_threads_and_coroutines_ask_side_by_side(system: ActorSystem) -> None:
    pool = system.pool(Double, processes=2)

    def in_turn(first: int) -> list[int]:
        return [pool.ask(number).result(LIMIT) for number in range(first, first + 500)]

    async def awaited(first: int) -> list[int]:
        return [await pool.ask(number) for number in range(first, first + 500)]

    with ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(in_turn, 1_000 * thread) for thread in range(3)]
        asking.append(threads.submit(asyncio.run, awaited(3_000)))
        for thread, answers in enumerate(asking):
            first = 1_000 * thread
            assert answers.result(LIMIT) == [2 * n for n in range(first, first + 500)]


def test_messages_that_are_longer_than_the_memory_of_the_channel_pass_in_order(
    system: ActorSystem, tmp_path: Path
) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1)
    long = os.urandom(LONG)
    asked = []
    for number in range(4):
        pool.tell(number)
        asked.append(pool.ask([long, number]))
    assert [answer.result(LIMIT) for answer in asked] == [[long, number] for number in range(4)]
    assert noted(tmp_path) == [[*range(4)]]


def test_long_messages_both_ways_do_not_wait_for_each_other(system: ActorSystem) -> None:
    pool = system.pool(Odd, processes=1)
    asked = [pool.ask([number, bytes(LONG // 4)]) for number in range(40)]
    assert [answer.result(LIMIT)[0] for answer in asked] == [*range(40)]


@pytest.mark.parametrize(
    ("act", "why"),
    [("scribble", "odd/1"), ("nonsense", "it sent what cannot be")],
)
def test_a_process_that_writes_nonsense_is_replaced(
    system: ActorSystem, caplog: pytest.LogCaptureFixture, act: str, why: str
) -> None:
    """Either side of the channel may notice it first."""
    found = letters(system)
    pool = system.pool(Odd, processes=1, name="odd")
    before = pool.ask("pid").result(LIMIT)
    pool.ask(act)
    eventually(lambda: isinstance(pool.ask(1).exception(LIMIT), ConnectionLost), "it is ended")
    after = pool.ask("pid").result(LIMIT)
    assert after != before
    system.drain(LIMIT)
    assert found == []
    assert any(why in record.getMessage() for record in caplog.records)


class Interrupted(Exception):
    pass


@pytest.fixture
def _interrupts() -> Iterator[None]:
    def interrupt(*_: Any) -> None:
        raise Interrupted

    old = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


@pytest.mark.usefixtures("_interrupts")
def test_a_thread_that_is_interrupted_while_it_waits_loses_no_answer(system: ActorSystem) -> None:
    pool = system.pool(Double, processes=1)
    assert pool.ask(0).result(LIMIT) == 0
    interruptions = 0
    for number in range(3_000):
        answer = pool.ask(number)
        behind = pool.ask(-number)
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + number % 60))
            answer.result(LIMIT)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupted:
            interruptions += 1
        assert (answer.result(LIMIT), behind.result(LIMIT)) == (2 * number, -2 * number)
    assert interruptions


def test_a_callback_of_an_answer_must_not_wait_for_another(system: ActorSystem) -> None:
    pool = system.pool(Double, processes=1)
    found: list[Any] = []

    def wait(_: Any) -> None:
        try:
            found.append(pool.ask(2).result(LIMIT))
        except CallboardError as error:
            found.append(str(error))

    for number in range(1_000):  # if an answer has come already, this thread may wait
        answer = pool.ask(number)
        answer.add_done_callback(wait)
        assert answer.result(LIMIT) == 2 * number
        if found[-1:] not in ([], [4]):
            break
    assert "in a callback of an answer would wait for" in found[-1]


def test_an_ask_times_out_and_its_answer_is_dropped(system: ActorSystem, tmp_path: Path) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1)
    late = pool.ask(["sleep", 0.2], timeout=0.01)
    with pytest.raises(AskTimeout, match=r"no answer from '/.*/1' after 0.01 s"):
        late.result(LIMIT)
    assert pool.ask(1, timeout=LIMIT).result(LIMIT) == 1
    system.drain(LIMIT)


def test_a_bounded_mailbox_that_blocks_takes_messages_in_order(
    system: ActorSystem, tmp_path: Path
) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1, mailbox=BoundedMailbox(2, "block"))
    pool.tell_many(range(100))
    asked = [pool.ask(number) for number in range(100, 200)]
    assert [answer.result(LIMIT) for answer in asked] == [*range(100, 200)]
    assert noted(tmp_path) == [[*range(200)]]


def test_a_forked_child_cannot_use_the_pool_of_its_parent(system: ActorSystem) -> None:
    pool = system.pool(Double, processes=1)
    assert pool.ask(1).result(LIMIT) == 2
    child = os.fork()
    if not child:
        status = 1
        try:
            pool.ask(2)
        except ConnectionLost:
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.ask(3).result(LIMIT) == 6


def test_a_ref_cannot_be_pickled(system: ActorSystem) -> None:
    pool = system.pool(Double, processes=1)
    with pytest.raises(TypeError, match="its process belongs to this program"):
        pickle.dumps(pool.refs[0])
