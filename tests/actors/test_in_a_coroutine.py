"""An actor system in the user's event loop: no call blocks the loop unless asked to."""

import asyncio
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

import callboard
from callboard import (
    Actor,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    DrainTimeout,
    Future,
    WouldBlock,
)
from callboard.testing import ManualSystem
from tests.actors.test_atell import DEADLINE, Gated, Scene, awaiting


class Held(Actor[threading.Event]):
    """In the middle of its message until the test lets it go."""

    def __init__(self, entered: threading.Event) -> None:
        self.entered = entered

    def receive(self, opened: threading.Event) -> None:
        self.entered.set()
        opened.wait(DEADLINE)


def workers_of(name: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(name)]


# --- leaving a system -----------------------------------------------------------------------------


def test_leaving_drains_and_stops_and_the_loop_goes_on() -> None:
    seen: list[str] = []

    class Slow(Actor[str]):
        def receive(self, message: str) -> None:
            loop.call_soon_threadsafe(seen.append, "the loop")
            while not seen:  # the loop goes on
                pass
            seen.append(message)

    loop: Any = None

    async def main() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        async with ActorSystem("left") as system:
            system.spawn(Slow).tell("the actor")
        assert system.is_closed

    awaiting(main)
    assert seen == ["the loop", "the actor"]
    assert workers_of("left") == []


def test_an_exception_stops_at_once() -> None:
    scene: Any = None

    async def main() -> None:
        nonlocal scene
        async with ActorSystem("left") as system:
            scene = Scene(system)
            raise ValueError("of the block")

    with pytest.raises(ValueError, match="of the block"):
        awaiting(main)
    assert scene.seen == []
    assert workers_of("left") == []


async def test_a_cancellation_while_leaving_stops_and_goes_on() -> None:
    scenes: list[Scene] = []

    async def leaves() -> None:
        async with ActorSystem("left") as system:
            scenes.append(Scene(system))
            asyncio.get_running_loop().call_soon(task.cancel)
            asyncio.get_running_loop().call_later(0.01, task.cancel)

    task = asyncio.ensure_future(leaves())
    await asyncio.wait([task])
    assert task.cancelled()
    assert scenes[0].seen == []
    assert workers_of("left") == []


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancel_at_any_step_of_the_end_stops_the_system(steps: int) -> None:
    async def leaves() -> None:
        async with ActorSystem("left", workers=1) as system:
            systems.append(system)
            Scene(system)

    systems: list[ActorSystem] = []
    task = asyncio.ensure_future(leaves())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert all(system.is_closed for system in systems)
    assert workers_of("left") == []


def test_an_actor_that_exceeds_the_drain_timeout_is_left_behind() -> None:
    async def main() -> None:
        async with ActorSystem("late", drain_timeout=0.1) as system:
            system.spawn(Held, entered).tell(opened)
            entered.wait(DEADLINE)

    entered, opened = threading.Event(), threading.Event()
    with pytest.raises(DrainTimeout, match="threads are left behind"):
        awaiting(main)
    opened.set()


def test_a_failure_that_stopped_the_system_is_raised() -> None:
    class Fails(Actor[int]):
        supervision = "escalate"

        def receive(self, message: int) -> None:
            raise KeyError("of the actor")

    async def main() -> None:
        async with ActorSystem() as system:
            system.spawn(Fails).tell(1)

    with pytest.raises(KeyError, match="of the actor"):
        awaiting(main)


async def test_a_manual_system_runs_where_it_is_left() -> None:
    seen: list[int] = []
    async with ManualSystem() as system:
        gate: Future[None] = Future()
        gate.set_result(None)
        system.spawn(Gated, gate, seen).tell(1)
        await system.adrain()
        assert seen == [1]
        system.spawn(Gated, gate, seen).tell(2)
    assert seen == [1, 2]


class Late(Actor[Any]):
    """Answers after a while, or with a future that it was told."""

    async def receive(self, message: Any) -> Any:
        if isinstance(message, Future):
            return message
        await self.sleep(60.0)
        return message


async def test_an_await_of_a_coroutine_runs_a_manual_system() -> None:
    async with ManualSystem() as system:
        ref = await system.spawn(Late).ready
        assert await ref.ask(1) == 1
        assert [*await asyncio.gather(ref.ask(2), ref.ask(3))] == [2, 3]
        both = callboard.gather(ref.ask(4), ref.ask(5))
        assert await asyncio.wait_for(both, DEADLINE) == [4, 5]
        assert await ref.ask(6).map(str) == "6"
        assert system.now == 360.0
        assert await ref.ask(7, timeout=1.0).recover(type) is callboard.AskTimeout
        ref.stop()
        assert (await ref.ended).reason == "stopped"


async def test_an_answer_from_another_task_is_waited_for_in_a_manual_system() -> None:
    async with ManualSystem() as system:
        ref = system.spawn(Late)
        promise: Future[str] = Future()
        task = asyncio.ensure_future(ref.ask(promise))
        await asyncio.sleep(0)
        assert not task.done()
        promise.set_result("from the other task")
        assert await task == "from the other task"


def test_an_actor_on_the_event_loop_of_a_manual_system_awaits_as_ever() -> None:
    late: Any = None

    class Asks(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            first, second = asyncio.ensure_future(late.ask(1)), late.ask(2)
            return [await first, await second]

    async def main() -> None:
        nonlocal late
        async with ManualSystem() as system:
            late = system.spawn(Late)
            assert await system.spawn(Asks, event_loop=True).ask("go") == [1, 2]

    awaiting(main)


# --- draining -------------------------------------------------------------------------------------


async def test_adrain_is_done_when_the_system_is_idle(system: ActorSystem) -> None:
    scene = Scene(system)
    drained = system.adrain()
    await asyncio.sleep(0)
    assert not drained.done()
    scene.gate.set_result(None)
    await drained
    assert scene.seen == [0, 1, 2]


def test_adrain_fails_when_the_time_is_up(system: ActorSystem) -> None:
    scene = Scene(system)
    with pytest.raises(DrainTimeout, match="did not become idle in 0 s"):
        awaiting(lambda: system.adrain(0.0))
    scene.gate.set_result(None)


def test_adrain_in_an_actor_of_the_system_is_refused(system: ActorSystem) -> None:
    class Drains(Actor[int]):
        async def receive(self, message: int) -> None:
            await self.system.adrain()

    with pytest.raises(CallboardError, match="would wait for the actor itself"):
        system.spawn(Drains).ask(1).result(DEADLINE)


async def test_ajoin_is_true_when_all_actors_have_ended(system: ActorSystem) -> None:
    ref = system.spawn(Held, threading.Event())
    joined = system.ajoin()
    assert not joined.done()
    ref.stop()
    assert await joined
    assert await system.ajoin(0.0)  # at once


async def test_ajoin_is_false_when_the_time_is_up(system: ActorSystem) -> None:
    system.spawn(Held, threading.Event())
    assert not await system.ajoin(0.01)


def test_ajoin_in_an_actor_of_the_system_is_refused(system: ActorSystem) -> None:
    class Joins(Actor[int]):
        def receive(self, message: int) -> object:
            return system.ajoin()

    with pytest.raises(CallboardError, match="would wait for the actor itself"):
        system.spawn(Joins).ask(1).result(DEADLINE)


# --- blocking calls -------------------------------------------------------------------------------


def blocked_calls() -> dict[str, tuple[Callable[[ActorSystem, Scene], Any], str]]:
    return {
        "tell": (lambda system, scene: scene.ref.tell(3), r"await atell\(\)"),
        "tell_many": (lambda system, scene: scene.ref.tell_many([3]), r"await atell\(\)"),
        "result": (lambda system, scene: Future().result(), "`await` it"),
        "exception": (lambda system, scene: Future().exception(), "`await` it"),
        "drain": (lambda system, scene: system.drain(), r"await adrain\(\)"),
        "join": (lambda system, scene: system.join(), r"await ajoin\(\)"),
        "stop": (lambda system, scene: system.stop(), r"await astop\(\)"),
        "the end": (
            lambda system, scene: system.__exit__(None, None, None),
            r"await astop\(\)",
        ),
    }


@pytest.mark.parametrize("name", list(blocked_calls()))
async def test_a_blocking_call_is_refused_with_advice(system: ActorSystem, name: str) -> None:
    call, advice = blocked_calls()[name]
    scene = Scene(system)
    with pytest.raises(WouldBlock, match=f"would block the event loop: .*{advice}"):
        call(system, scene)
    scene.gate.set_result(None)
    await system.adrain(DEADLINE)
    assert scene.seen == [0, 1, 2]


def test_astop_stops_while_the_loop_goes_on() -> None:
    async def main() -> None:
        system = ActorSystem("soon")
        entered = threading.Event()
        opened = threading.Event()
        system.spawn(Held, entered).tell(opened)
        entered.wait(DEADLINE)
        stopping = system.astop(DEADLINE)
        assert not stopping.done()
        opened.set()
        await stopping
        assert system.is_closed
        await system.astop()

    awaiting(main)
    for thread in threading.enumerate():
        if thread.name == "soon-stop":  # it has completed the future, and ends
            thread.join(DEADLINE)
    assert workers_of("soon") == []


async def test_astop_fails_as_stop_does() -> None:
    entered, opened = threading.Event(), threading.Event()
    system = ActorSystem("stuck")
    system.spawn(Held, entered).tell(opened)
    entered.wait(DEADLINE)
    with pytest.raises(DrainTimeout, match="did not stop"):
        await system.astop(0.01)
    opened.set()


def test_astop_in_an_actor_only_asks(system: ActorSystem) -> None:
    class Stops(Actor[int]):
        async def receive(self, message: int) -> None:
            await other.astop()

    class StopsItsOwn(Actor[int]):
        def receive(self, message: int) -> None:
            self.system.astop()

    other = ActorSystem("other")
    system.spawn(Stops, dedicated=True).ask(1).result(DEADLINE)
    assert other.is_closed
    system.spawn(StopsItsOwn).tell(1)
    system.join(DEADLINE)


async def test_a_with_block_is_refused_where_it_begins() -> None:
    system = ActorSystem("refused")
    with pytest.raises(CallboardError, match=r"the end of `with` would .*: use `async with`"):
        system.__enter__()
    assert system.is_closed
    assert workers_of("refused") == []


async def test_a_call_that_would_not_block_goes_through(system: ActorSystem) -> None:
    class Notes(Actor[int]):
        def receive(self, number: int) -> None:
            seen.append(number)

    seen: list[int] = []
    done: Future[int] = Future()
    done.set_result(3)
    assert done.result() == 3
    ref = system.spawn(Notes, mailbox=BoundedMailbox(2))
    ref.tell(1)
    while ref.statistics().queue or not seen:
        pass
    with pytest.raises(TimeoutError):
        Future[None]().result(timeout=0)


async def test_an_ask_waits_for_room_as_for_its_answer(system: ActorSystem) -> None:
    scene = Scene(system)
    answer = scene.ref.ask(3)
    scene.gate.set_result(None)
    assert await answer == 3


async def test_blocking_may_be_asked_for(system: ActorSystem) -> None:
    scene = Scene(system)
    thread = threading.Thread(target=scene.gate.set_result, args=(None,))
    with callboard.blocking():
        answer = scene.ref.ask(3)
        thread.start()
        assert answer.result(DEADLINE) == 3
        system.drain(DEADLINE)
    thread.join()
    with pytest.raises(CallboardError):
        Future().result()


def test_a_cell_of_a_notebook_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel: Any = types.ModuleType("ipykernel.kernelapp")
    kernel.IPKernelApp = types.SimpleNamespace(initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "ipykernel.kernelapp", kernel)

    async def main() -> int:
        class Doubler(Actor[int]):
            def receive(self, number: int) -> int:
                return 2 * number

        with ActorSystem(workers=1) as system:
            answer: int = system.spawn(Doubler).ask(4).result(DEADLINE)
            return answer

    assert awaiting(main) == 8


async def test_a_manual_system_waits_by_running() -> None:
    with ManualSystem() as system:
        gate: Future[None] = Future()
        gate.set_result(None)
        seen: list[int] = []
        ref = system.spawn(Gated, gate, seen, mailbox=BoundedMailbox(1))
        for number in range(5):
            ref.tell(number)
        assert ref.ask(5).result(1.0) == 5
        system.drain()
        assert seen == [*range(6)]


def test_a_coroutine_of_trio_is_refused_too(system: ActorSystem) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        with pytest.raises(CallboardError, match="would block the event loop"):
            Future().result()
        async with ActorSystem("left") as other:
            ref = other.spawn(Held, threading.Event())
            await ref.atell(opened)
            await system.adrain()

    opened = threading.Event()
    opened.set()
    trio.run(main)
    assert workers_of("left") == []


# --- result() -------------------------------------------------------------------------------------


class Echo(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return message


async def test_result_of_an_answer_that_has_just_come_is_refused_as_one_that_is_to_come() -> None:
    async with ActorSystem() as system:
        echo = system.spawn(Echo)
        for n in range(100):
            answer = echo.ask(n)
            if n % 2:
                await system.adrain()  # the answer is there
            with pytest.raises(WouldBlock, match="would block the event loop: `await` it"):
                answer.result(DEADLINE)
            with pytest.raises(WouldBlock):
                answer.exception()
            with callboard.blocking():
                assert answer.result(DEADLINE) == n
            assert answer.result() == n


async def test_result_of_a_future_that_is_known_to_be_done_is_allowed() -> None:
    async with ActorSystem() as system:
        echo = system.spawn(Echo)
        awaited, called, looked, gathered = [echo.ask(n) for n in range(4)]
        assert await awaited == awaited.result() == 0
        called_back = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        called.add_done_callback(
            lambda done: loop.call_soon_threadsafe(called_back.set_result, done.result())
        )
        assert await called_back == called.result() == 1
        while not looked.done():
            await asyncio.sleep(0)
        assert looked.result() == 2
        assert await callboard.gather(gathered) == [gathered.result()]
        mine: Future[int] = Future()
        mine.set_result(5)
        assert mine.result() == 5
        assert mine.exception() is None
        opened = threading.Event()
        cancelled = system.spawn(Held, threading.Event()).ask(opened)
        cancelled.cancel()
        with pytest.raises(callboard.AskCancelled):
            cancelled.result()
        opened.set()  # it may have begun


async def test_result_with_a_timeout_of_0_looks_and_does_not_wait() -> None:
    async with ActorSystem() as system:
        answer = system.spawn(Echo).ask(1)
        await system.adrain()
        assert answer.result(0) == 1
        never: Future[int] = Future()
        with pytest.raises(callboard.AskTimeout):
            never.result(0)
