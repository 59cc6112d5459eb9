"""A task of asyncio that outlives its message has no sender, and holds no later message back."""

import asyncio
import threading
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox
from tests.remote.conftest import eventually

DEADLINE = 60.0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_tasks_left_waiting_hold_back_no_message(system: ActorSystem, concurrency: int) -> None:
    entered, let_go = threading.Event(), threading.Event()
    got: list[int] = []

    class Slow(Actor[int]):
        def receive(self, message: int) -> None:
            entered.set()
            let_go.wait(DEADLINE)
            got.append(message)

    slow = system.spawn(Slow, mailbox=BoundedMailbox(2), name="slow", dedicated=True)
    slow.tell(-1)
    assert entered.wait(DEADLINE)

    class Sends(Actor[str]):
        async def receive(self, message: str) -> str:
            async def send(first: int) -> None:
                for number in range(first, first + 5):
                    slow.tell(number)
                    await asyncio.sleep(0)

            async def fail() -> None:
                raise ValueError("in the middle")

            if message == "work":
                await asyncio.gather(send(0), fail(), send(5))
            return message

    ref = system.spawn(Sends, event_loop=True, concurrency=concurrency, supervision="restart")
    answer = ref.ask("work")
    eventually(lambda: ref.info().waits_for == "room at /slow", "it waits for room")
    let_go.set()
    with pytest.raises(ValueError, match="in the middle"):
        answer.result(DEADLINE)
    assert ref.ask("more").result(DEADLINE) == "more"
    eventually(lambda: sorted(got) == list(range(-1, 10)), "the tasks come to their end")


def test_a_task_that_waits_to_enter_holds_back_no_later_message(system: ActorSystem) -> None:
    entered, let_go = threading.Event(), threading.Event()
    doors: dict[str, asyncio.Future[None]] = {}

    class Leaves(Actor[str]):
        def on_failure(self, error: BaseException, message: Any) -> None:
            entered.set()  # on the worker, so that steps on the loop wait
            let_go.wait(DEADLINE)

        async def receive(self, message: str) -> str:
            async def left() -> None:
                await doors["task"]

            if message == "fail":
                raise ValueError(message)
            if message == "leave":
                loop = asyncio.get_running_loop()
                doors["task"] = loop.create_future()
                self.task = loop.create_task(left())
                await asyncio.sleep(0)  # until it has begun
                doors["message"] = loop.create_future()
                await doors["message"]
            return message

    ref = system.spawn(Leaves, event_loop=True, concurrency=2, supervision="resume")
    leaves = ref.ask("leave")
    eventually(lambda: "message" in doors, "it waits in the middle")
    ref.tell("fail")
    assert entered.wait(DEADLINE)
    loop: Any = doors["task"].get_loop()

    async def open_all() -> None:
        doors["message"].set_result(None)  # its last step is the first that waits
        doors["task"].set_result(None)
        for _ in range(3):  # until both wait
            await asyncio.sleep(0)

    asyncio.run_coroutine_threadsafe(open_all(), loop).result(DEADLINE)
    let_go.set()
    assert leaves.result(DEADLINE) == "leave"
    assert [ref.ask(str(number)).result(DEADLINE) for number in range(3)] == ["0", "1", "2"]


def test_a_task_may_be_closed_after_its_actor_has_ended(system: ActorSystem) -> None:
    left: list[asyncio.Task[None]] = []
    closed: list[str] = []

    class Leaves(Actor[str]):
        async def receive(self, message: str) -> None:
            async def wait() -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    closed.append(message)

            left.append(asyncio.get_running_loop().create_task(wait()))
            await asyncio.sleep(0)

    ref = system.spawn(Leaves, event_loop=True)
    ref.ask("it").result(DEADLINE)
    ref.stop()
    ref.ended.result(DEADLINE)
    coroutine: Any = left[0].get_coro()
    coroutine.close()
    assert closed == ["it"]
