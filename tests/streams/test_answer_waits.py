"""Threads that wait for answers, and notice a cancel; and the pauses between attempts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, Future, Supervision
from callboard.streams import RunEnded, Stream
from callboard.streams.programs.rows.coroutines import LONGEST, Pauses
from callboard.testing import ManualSystem
from tests.remote.conftest import eventually
from tests.streams.answering import rows


class Silent(Actor[Any]):
    """Says that it was asked, and answers at the end."""

    def __init__(self, asked: threading.Semaphore) -> None:
        self.asked = asked
        self.futures: list[Future[Any]] = []
        self.answers = False

    def receive(self, message: Any) -> Any:
        if self.answers:
            return None  # an ask that was on its way while its run was cancelled
        if message == "answer":
            self.answers = True
            for future in self.futures:
                future.set_result(None)
            return None
        self.futures.append(Future())
        self.asked.release()
        return self.futures[-1]


def silent(ref: ActorRef[Any], way: str, stream: Stream[Any]) -> Stream[Any]:
    if way == "ask":
        return stream.ask(ref)
    return stream.map(lambda row: ref.ask(row), in_flight=8)


WAYS = pytest.mark.parametrize("way", ["ask", "await"])


@WAYS
@pytest.mark.parametrize("where", ["the sender's thread", "another thread"])
def test_a_cancel_ends_the_wait_of_a_thread_that_runs_operators(way: str, where: str) -> None:
    asked = threading.Semaphore(0)
    raised: list[BaseException] = []
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Silent, asked)
        graph = silent(ref, way, rows.new_thread() if "other" in where else rows).collect()
        run = system.run(graph, threading="manual")

        def send() -> None:
            try:
                run.send("rows", [1, 2, 3])
                run.finish()
            except RunEnded as error:
                raised.append(error)

        sender = threading.Thread(target=send)
        sender.start()
        assert asked.acquire(timeout=60)
        run.cancel(timeout=60)  # or it takes a minute, and the thread is at work still
        eventually(lambda: not run._work.is_anybody_at_work(), "no thread is at work")
        sender.join(60)
        assert not sender.is_alive()
        assert len(raised) == 1
        ref.tell("answer")


@WAYS
def test_a_stop_of_the_system_ends_the_wait_of_a_thread_that_runs_operators(way: str) -> None:
    asked = threading.Semaphore(0)
    system = ActorSystem(workers=1)
    graph = silent(system.spawn(Silent, asked), way, rows.new_thread()).collect()
    run = system.run(graph, threading="manual")
    run.send("rows", [1, 2, 3])
    assert asked.acquire(timeout=60)
    system.stop(60)  # DrainTimeout, if the thread does not come back
    with pytest.raises(RunEnded):
        run.finish()


# --- pauses ---------------------------------------------------------------------------------------


def test_pauses_double_and_are_shorter_by_a_random_part() -> None:
    pauses = Pauses(1.0, 0.5)
    for tries in range(1, 20):
        longest = min(2.0 ** (tries - 1), LONGEST)
        some = {pauses.after(tries) for _ in range(50)}
        assert len(some) > 1
        assert all(longest / 2 <= seconds <= longest for seconds in some)
    assert [Pauses(1.0, 0.0).after(tries) for tries in (1, 2, 3, 1000)] == [1, 2, 4, LONGEST]
    assert 0 <= Pauses(1.0, 1.0).after(1) <= 1


@WAYS
def test_rows_that_failed_together_are_not_tried_again_together(way: str) -> None:
    tries: list[tuple[float, int]] = []

    def attempt(row: int) -> int:
        tries.append((system.now, row))
        if sum(each == row for _, each in tries) < 2:
            raise ValueError(row)
        return row

    class Flaky(Actor[int]):
        def receive(self, message: int) -> int:
            return attempt(message)

    async def flaky(row: int) -> int:
        return attempt(row)

    seen = []
    for _ in range(2):
        tries.clear()
        with ManualSystem(seed=3) as system:
            ref = system.spawn(Flaky, supervision=Supervision("resume"))
            options: dict[str, Any] = {"retries": 1, "backoff": 4.0}
            tried = rows.ask(ref, **options)
            if way == "await":
                tried = rows.map(flaky, in_flight=8, **options)
            run = system.run(tried.collect())
            run.send("rows", range(4))
            assert run.finish() == [0, 1, 2, 3]
            assert [time for time, _ in tries[:4]] == [0.0] * 4
            later = [time for time, _ in tries[4:]]
            assert len(set(later)) == 4
            assert all(2.0 <= time <= 4.0 for time in later)
            seen.append(list(tries))
    assert seen[0] == seen[1]  # a manual system replays them
