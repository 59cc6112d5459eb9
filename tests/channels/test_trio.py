"""Channels and futures in tasks of trio, and of anyio on both of its hosts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import Future
from typing import Any

import pytest

from callboard import Actor, ActorSystem, AskTimeout
from callboard.channels import ChannelTimeout, Receiver, Selection, Sender, channel, select
from tests.channels.users import WAIT, in_thread

trio = pytest.importorskip("trio")
anyio = pytest.importorskip("anyio")
testing = pytest.importorskip("trio.testing")


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        if isinstance(message, Exception):
            raise message
        return message


def test_an_answer_is_awaited_in_a_task_of_trio(system: ActorSystem) -> None:
    echo = system.spawn(Echo)

    async def main() -> None:
        with trio.fail_after(WAIT):
            assert await echo.ask("question") == "question"
            with pytest.raises(ValueError, match="as it was told"):
                await echo.ask(ValueError("as it was told"))

    trio.run(main)


def test_a_question_has_a_time_limit_in_trio(system: ActorSystem) -> None:
    gate: Future[None] = Future()

    class Slow(Actor[str]):
        def receive(self, message: str) -> None:
            gate.result(WAIT)

    slow = system.spawn(Slow)

    async def main() -> None:
        with pytest.raises(AskTimeout):
            await slow.ask("question", timeout=0.001)
        with trio.move_on_after(0.001) as scope:
            await slow.ask("question")
        assert scope.cancelled_caught

    try:
        trio.run(main)
    finally:
        gate.set_result(None)


async def waits(operation: Any, ended: list[Any]) -> None:
    ended.append(await operation)


@pytest.mark.parametrize("capacity", [0, 1])
@pytest.mark.parametrize("takes", [True, False])
def test_a_cancel_scope_says_whether_the_value_was_sent(capacity: int, takes: bool) -> None:
    async def main() -> None:
        sender, receiver = channel(capacity)
        if capacity:
            assert sender.send_nowait("first")
        operation = sender.send("value")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits, operation, [])
            await testing.wait_all_tasks_blocked()
            assert not operation.sent
            if takes:
                assert receiver.receive_nowait() == ("first" if capacity else "value")
            nursery.cancel_scope.cancel()
        # At capacity 1 there is room now, but the cancelled send does not take it.
        assert operation.sent == (takes and capacity == 0)
        assert receiver.receive_nowait(None) == ("first" if capacity and not takes else None)

    trio.run(main)


@pytest.mark.parametrize("how", ["receive", "receive_many", "select", "async for"])
@pytest.mark.parametrize("comes", [True, False])
def test_a_cancelled_wait_takes_nothing(how: str, comes: bool) -> None:
    """Not even when the value came before the cancellation, and the task did not run yet."""

    async def main() -> None:
        sender, receiver = channel(2)
        operation: Any
        match how:
            case "receive":
                operation = receiver.receive()
            case "receive_many":
                operation = receiver.receive_many(3)
            case "select":
                operation = select([receiver])
            case _:
                operation = aiter(receiver).__anext__()
        ended: list[Any] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits, operation, ended)
            await testing.wait_all_tasks_blocked()
            if comes:
                assert sender.send_nowait("value")
            nursery.cancel_scope.cancel()
        assert ended == []
        assert sender.send_nowait("next")
        assert receiver.receive_nowait() == ("value" if comes else "next")

    trio.run(main)


def test_a_cancelled_wait_leaves_its_turn_to_the_next() -> None:
    async def main() -> None:
        sender, receiver = channel(2)
        other = receiver.clone()
        ended: list[Any] = []
        async with trio.open_nursery() as nursery:
            first = await nursery.start(in_a_scope, receiver, [])
            nursery.start_soon(waits, other.receive(), ended)
            await testing.wait_all_tasks_blocked()
            assert sender.send_nowait("value")
            first.cancel()
        assert ended == ["value"]

    async def in_a_scope(receiver: Receiver[Any], ended: list[Any], *, task_status: Any) -> None:
        with trio.CancelScope() as scope:
            task_status.started(scope)
            await waits(receiver.receive(), ended)

    trio.run(main)


def test_a_time_limit_is_by_the_clock_of_trio() -> None:
    async def main() -> None:
        sender, receiver = channel(1)
        began = trio.current_time()
        for operation in (
            receiver.receive(timeout=1000),
            receiver.receive_many(2, timeout=1000),
            select([receiver], timeout=1000),
            Selection([receiver]).ready(timeout=1000),
        ):
            with pytest.raises(ChannelTimeout, match="timed out after 1000"):
                await operation
        assert sender.send_nowait("value")
        sending = sender.send("too much", timeout=1000)
        with pytest.raises(ChannelTimeout):
            await sending
        assert not sending.sent
        assert trio.current_time() - began == pytest.approx(5000, rel=0.05)
        assert await receiver.receive(timeout=1000) == "value"

    trio.run(main, clock=testing.MockClock(autojump_threshold=0))


def test_an_outer_scope_ends_an_operation_with_a_time_limit() -> None:
    async def main() -> None:
        _sender, receiver = channel(1)
        with trio.move_on_after(10) as scope:
            await receiver.receive(timeout=1000)
        assert scope.cancelled_caught

    trio.run(main, clock=testing.MockClock(autojump_threshold=0))


def test_an_end_belongs_to_the_thread_of_trio() -> None:
    sender, receiver = channel(1)

    async def main() -> Any:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits, sender.send("value"), [])
            return await receiver.receive()

    assert trio.run(main) == "value"
    assert sender.send_nowait("of the same thread")
    assert receiver.release() is receiver
    assert in_thread(lambda: trio.run(lambda: receiver_gives(receiver))).result(WAIT) == (
        "of the same thread"
    )


async def receiver_gives(receiver: Receiver[Any]) -> Any:
    return await receiver.receive()


def test_a_run_that_ended_leaves_the_channel_usable() -> None:
    sender, receiver = channel(1)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits, receiver.receive(), [])
            await testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(main)
    sender.put("value")
    assert receiver.get(WAIT) == "value"


def test_a_dedicated_actor_may_run_trio(system: ActorSystem) -> None:
    sender, receiver = channel(1)

    class RunsTrio(Actor[str]):
        def __init__(self, receiver: Receiver[Any]) -> None:
            self.receiver = receiver

        def receive(self, message: str) -> Any:
            return trio.run(self.main)

        async def main(self) -> Any:
            ended: list[Any] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(waits, self.receiver.receive(WAIT), ended)
                await testing.wait_all_tasks_blocked()
                began.set_result(None)
            return ended

    began: Future[None] = Future()
    answer = system.spawn(RunsTrio, receiver, dedicated=True).ask("go")
    began.result(WAIT)
    sender.put("value")
    assert answer.result(WAIT) == ["value"]


def test_trio_may_be_the_guest_of_asyncio() -> None:
    async def guest(receiver: Receiver[Any], back: Sender[Any]) -> None:
        async for value in receiver:
            await back.send(-value, WAIT)

    async def host() -> list[int]:
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        there, receiver = channel(1)
        sender, back = channel(1)
        trio.lowlevel.start_guest_run(
            guest,
            receiver,
            sender,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=over.set_result,
        )
        got = []
        for number in range(5):
            await there.send(number, WAIT)
            got.append(await back.receive(WAIT))
        there.close()
        (await over).unwrap()
        return got

    assert asyncio.run(host()) == [0, -1, -2, -3, -4]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio_waits_on_each_of_its_hosts(backend: str, system: ActorSystem) -> None:
    echo = system.spawn(Echo)

    async def main() -> None:
        sender, receiver = channel(1)
        got: list[Any] = []

        async def receives() -> None:
            got.extend([value async for value in receiver])

        with anyio.fail_after(WAIT):
            async with anyio.create_task_group() as group:
                group.start_soon(receives)
                for number in range(5):
                    await sender.send(await echo.ask(number))
                sender.close()
        assert got == list(range(5))

        sender, receiver = channel(1)
        with anyio.move_on_after(0.001) as scope:
            await select([receiver])
        assert scope.cancelled_caught
        assert sender.send_nowait("value")
        operation = sender.send("too much")
        with anyio.move_on_after(0.001) as scope:
            await operation
        assert scope.cancelled_caught
        assert not operation.sent
        assert await receiver.receive() == "value"

    anyio.run(main, backend=backend)


def test_trio_is_never_imported_for_this() -> None:
    program = """
import asyncio, sys
from callboard.channels import ChannelTimeout, channel

async def main():
    sender, receiver = channel(1)
    sending = asyncio.ensure_future(sender.send(1))
    await receiver.receive(30)
    try:
        await receiver.receive(0)
    except ChannelTimeout:
        print(sorted({"trio", "anyio", "sniffio"} & set(sys.modules)))

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
