"""Actors that use runs."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.nets import BoxError, NetRun, box
from tests.nets.running.gate import TIMEOUT, within


async def double(x: int) -> int:
    if x < 0:
        raise ValueError(x)
    return 2 * x


here = box(lambda x: 2 * x, "(x) -> (y)", name="here")
elsewhere = box(double, "(x) -> (y)")


class Waiter(Actor[int]):
    def __init__(self, run: NetRun) -> None:
        self.run = run

    async def receive(self, message: int) -> Any:
        [output] = await self.run.ask({"x": message})
        return output["y"]


class Blocker(Actor[int]):
    def __init__(self, run: NetRun) -> None:
        self.run = run

    def receive(self, message: int) -> Any:
        [output] = self.run.ask({"x": message}).result(TIMEOUT)
        return output["y"]


class Teller(Actor[int]):
    def __init__(self, run: NetRun) -> None:
        self.run = run

    def receive(self, message: int) -> None:
        self.run.tell({"x": message})


@pytest.mark.parametrize("net", [here, elsewhere], ids=["here", "elsewhere"])
@pytest.mark.parametrize("loop", [False, True], ids=["worker", "event loop"])
def test_an_actor_awaits_a_run(system: ActorSystem, net: Any, loop: bool) -> None:
    run = system.run(net)
    actor = system.spawn(Waiter, run, event_loop=loop)
    assert [actor.ask(x).result(TIMEOUT) for x in range(10)] == list(range(0, 20, 2))
    assert run.finish(TIMEOUT) == []


@pytest.mark.parametrize("net", [here, elsewhere], ids=["here", "elsewhere"])
def test_a_dedicated_actor_blocks_on_a_run(system: ActorSystem, net: Any) -> None:
    run = system.run(net)
    actor = system.spawn(Blocker, run, dedicated=True)
    assert [actor.ask(x).result(TIMEOUT) for x in range(10)] == list(range(0, 20, 2))


def test_an_actor_gets_the_error_of_its_ask(system: ActorSystem) -> None:
    run = system.run(elsewhere)
    actor = system.spawn(Waiter, run)
    with pytest.raises(BoxError):
        actor.ask(-1).result(TIMEOUT)
    assert run.ask({"x": 1}).result(TIMEOUT) == [{"y": 2}]


def test_an_actor_tells_a_run(system: ActorSystem) -> None:
    run = system.run(elsewhere)
    results = run.results()
    actor = system.spawn(Teller, run)
    for x in range(5):
        actor.tell(x)
        assert within(next, results).result(TIMEOUT) == {"y": 2 * x}


def test_a_box_uses_another_run(system: ActorSystem) -> None:
    inner = system.run(elsewhere)

    async def through(x: int) -> int:
        [output] = await inner.ask({"x": x})
        value: int = output["y"]
        return value + 1

    outer = system.run(box(through, "(x) -> (z)"))
    assert outer.ask({"x": 3}).result(TIMEOUT) == [{"z": 7}]
    inner.cancel()
