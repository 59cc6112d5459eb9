"""Actors with an event loop in a manual system: asyncio by the system's clock and seed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from callboard import Actor, ActorRef, AskTimeout, CallboardError
from callboard.testing import ManualSystem


class Sleeper(Actor[float]):
    async def receive(self, message: float) -> str:
        await asyncio.sleep(message)
        return f"slept {message:g} s"


class Caller(Actor[Any]):
    """Awaits what a function returns."""

    async def receive(self, message: Any) -> Any:
        return await message()


class Doubler(Actor[int]):
    def receive(self, message: int) -> int:
        return 2 * message


def test_asyncio_sleeps_by_the_systems_clock(manual: ManualSystem) -> None:
    sleeper = manual.spawn(Sleeper, event_loop=True)
    assert sleeper.ask(3600.0).result() == "slept 3600 s"
    assert manual.now == 3600.0
    asked = sleeper.ask(10.0)
    manual.advance(9.0)
    assert not asked.done()
    manual.advance(1.0)
    assert asked.done()


def test_a_timeout_that_was_not_needed_leaves_the_clock_alone(manual: ManualSystem) -> None:
    async def work() -> float:
        async with asyncio.timeout(60):
            await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    caller = manual.spawn(Caller, event_loop=True)
    assert caller.ask(work).result() == 1.0
    caller.stop()
    assert manual.join()
    assert manual.now == 1.0


def test_a_timeout_passes_by_the_systems_clock(manual: ManualSystem) -> None:
    async def work() -> None:
        async with asyncio.timeout(60):
            await asyncio.Event().wait()

    caller = manual.spawn(Caller, event_loop=True)
    with pytest.raises(TimeoutError):
        caller.ask(work).result()
    assert manual.now == 60.0


def test_coroutines_await_each_other_and_other_actors(manual: ManualSystem) -> None:
    doubler = manual.spawn(Doubler)

    async def double(value: int) -> int:
        await asyncio.sleep(value)
        doubled: int = await doubler.ask(value)
        return doubled

    async def work() -> list[int]:
        return await asyncio.gather(*map(double, range(4)))

    assert manual.spawn(Caller, event_loop=True).ask(work).result() == [0, 2, 4, 6]


def test_the_seed_says_whose_coroutine_is_first() -> None:
    def order(seed: int) -> tuple[int, ...]:
        came: list[int] = []

        async def note(value: int) -> None:
            came.append(value)

        with ManualSystem(seed) as system:
            for value in range(3):
                caller = system.spawn(Caller, event_loop=True)
                caller.tell(lambda value=value: note(value))
            system.run_until_idle()
        return tuple(came)

    orders = [order(seed) for seed in range(40)]
    assert len(set(orders)) == 6
    assert orders == [order(seed) for seed in range(40)]


def test_a_stop_cancels_what_is_left() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            await asyncio.sleep(0)
            ends.append("and cleaned up")
            raise

    system = ManualSystem()
    system.spawn(Caller, event_loop=True).tell(work)
    system.run_until_idle()
    assert ends == []
    system.stop()
    assert ends == ["cancelled", "and cleaned up"]


@pytest.mark.parametrize(
    "work",
    [lambda: asyncio.to_thread(print), lambda: asyncio.open_connection("localhost", 1)],
    ids=["threads", "sockets"],
)
def test_calls_from_outside_are_refused(work: Any, manual: ManualSystem) -> None:
    caller = manual.spawn(Caller, event_loop=True)
    with pytest.raises(CallboardError, match="a manual system"):
        caller.ask(work).result()


def test_a_coroutine_does_not_run_the_system_it_is_in(manual: ManualSystem) -> None:
    other = manual.spawn(Doubler)

    async def work() -> int:
        manual.step()
        return 1

    async def wait() -> int:
        doubled: int = other.ask(1).result()
        return doubled

    caller = manual.spawn(Caller, event_loop=True)
    with pytest.raises(CallboardError, match="awaits answers"):
        caller.ask(work).result()
    caller = manual.spawn(Caller, event_loop=True)
    with pytest.raises(CallboardError, match="would block the event loop"):
        caller.ask(wait).result()


def test_a_dedicated_actor_waits_for_one_with_an_event_loop(manual: ManualSystem) -> None:
    class Asker(Actor[float]):
        def __init__(self, other: ActorRef[float]) -> None:
            self.other = other

        def receive(self, message: float) -> Any:
            return self.other.ask(message).result()

    asker = manual.spawn(Asker, manual.spawn(Sleeper, event_loop=True), dedicated=True)
    assert asker.ask(5.0).result() == "slept 5 s"


def test_an_answer_that_cannot_come_is_not_waited_for(manual: ManualSystem) -> None:
    caller = manual.spawn(Caller, name="caller", event_loop=True)
    asked = caller.ask(asyncio.Event().wait)
    with pytest.raises(AskTimeout, match=r"/caller.*is idle"):
        asked.result()
    caller.stop()


def test_a_test_may_be_a_coroutine_itself() -> None:
    async def test() -> None:
        with ManualSystem() as system:
            sleeper = system.spawn(Sleeper, event_loop=True)
            sleeper.tell(1.0)
            system.advance(1.0)
            assert asyncio.get_running_loop().is_running()

    asyncio.run(test())
