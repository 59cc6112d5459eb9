"""Runs in a manual system: boxes of all kinds by its seed, and times by its clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from callboard import Actor, ActorRef, AskTimeout, DeadLetter
from callboard.nets import BoxError, Net, NetTimeout, box, choice, join, ordered, sync
from callboard.nets import filter as filtering
from callboard.testing import ManualSystem, replay
from tests.nets.running.gate import rows, send_all, values_of


def double(x: int) -> int:
    return 2 * x


async def double_later(x: int) -> int:
    await asyncio.sleep(1)
    return 2 * x


def count(x: int) -> Iterator[int]:
    yield from range(200)


async def count_later(x: int) -> AsyncIterator[int]:
    for number in range(200):
        await asyncio.sleep(0)
        yield number


class Doubles:
    async def __call__(self, x: int) -> int:
        await asyncio.sleep(0)
        return 2 * x


BOXES = {
    "coroutine": box(double_later, "(x) -> (y)"),
    "object": box(Doubles, "(x) -> (y)"),
    "limited": box(double_later, "(x) -> (y)", concurrency=2),
    "threads": box(double, "(x) -> (y)", threads=True, concurrency=3),
    "placed": box(double, "(x) -> (y)", threads=True).at(0),
    "dedicated": box(double, "(x) -> (y)", dedicated=True),
    "timeout": box(double, "(x) -> (y)", timeout=5),
}
GENERATORS = {
    "generator": box(count, "(x) -> (y)"),
    "on a thread": box(count, "(x) -> (y)", threads=True),
    "on a worker": box(count, "(x) -> (y)", threads=True).at(0),
    "coroutine": box(count_later, "(x) -> (y)"),
}


@pytest.mark.parametrize("name", BOXES)
@replay(10)
def test_boxes_of_each_kind_run(name: str, seed: int) -> None:
    with ManualSystem(seed) as system:
        run = system.run(BOXES[name])
        assert run.ask({"x": 7}).result() == [{"y": 14}]
        assert sorted(values_of(send_all(run, rows(range(5))), "y")) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("name", GENERATORS)
@replay(3)
def test_generators_of_each_kind_run(name: str, seed: int) -> None:
    with ManualSystem(seed) as system:
        run = system.run(GENERATORS[name], window=2)
        values = values_of(send_all(run, rows(range(3))), "y")
    if name == "coroutine":  # whose calls run side by side
        values.sort()
        assert values == sorted([*range(200)] * 3)
    else:
        assert values == [*range(200)] * 3


def test_the_seed_says_which_of_several_calls_is_first() -> None:
    async def at_once(x: int) -> int:
        return x

    def order(seed: int, net: Net) -> tuple[int, ...]:
        with ManualSystem(seed) as system:
            return tuple(values_of(send_all(system.run(net), rows(range(3))), "y"))

    net = box(at_once, "(x) -> (y)")
    orders = [order(seed, net) for seed in range(60)]
    assert len(set(orders)) == 6
    assert {order(seed, ordered(net)) for seed in range(60)} == {(0, 1, 2)}


@pytest.mark.parametrize("name", BOXES)
def test_two_runs_of_a_seed_have_the_same_trace(name: str) -> None:
    def trace(seed: int) -> list[Any]:
        with ManualSystem(seed) as system:
            send_all(system.run(BOXES[name], window=3), rows(range(8)))
        return system.trace

    assert trace(5) == trace(5)


@replay(10)
def test_branches_do_not_wait_for_each_other(seed: int) -> None:
    async def wait(slow: float) -> float:
        await asyncio.sleep(slow)
        return slow

    net = choice(box(wait, "(slow) -> (done)"), filtering("{quick} -> {done=quick}"))
    with ManualSystem(seed) as system:
        run = system.run(net)
        run.send([{"slow": 50.0}, {"quick": 0}, {"slow": 10.0}])
        results = run.results()
        assert [next(results)["done"] for _ in range(3)] == [0, 10.0, 50.0]
        assert system.now == 50.0


def test_calls_take_too_long_and_are_repeated_by_the_systems_clock(manual: ManualSystem) -> None:
    at: list[float] = []

    async def third_time(x: int) -> int:
        at.append(manual.now)
        await asyncio.sleep(100 if len(at) < 3 else 4)
        return x

    run = manual.run(box(third_time, "(x) -> (y)", timeout=5, retries=2, backoff=10))
    assert run.ask({"x": 1}).result() == [{"y": 1}]
    assert at == [0.0, 15.0, 40.0]
    assert manual.now == 44.0


def test_a_system_that_drains_waits_for_coroutines(manual: ManualSystem) -> None:
    run = manual.run(BOXES["coroutine"])
    run.tell_many(rows(range(3)))
    manual.drain()
    assert manual.now == 1.0
    assert sorted(values_of(run.finish(), "y")) == [0, 2, 4]


def test_a_coroutine_awaits_actors_and_runs(manual: ManualSystem) -> None:
    class Doubler(Actor[int]):
        def receive(self, message: int) -> int:
            return 2 * message

    doubler: ActorRef[int] = manual.spawn(Doubler)
    inner = manual.run(BOXES["coroutine"])

    async def through(x: int) -> int:
        [output] = await inner.ask({"x": await doubler.ask(x)})
        value: int = output["y"]
        return value + 1

    assert manual.run(box(through, "(x) -> (z)")).ask({"x": 3}).result() == [{"z": 13}]


def test_an_ask_that_waits_for_the_test_says_for_what(manual: ManualSystem) -> None:
    opened: dict[str, asyncio.Event] = {}

    async def wait(x: int) -> int:
        opened["door"] = asyncio.Event()
        await opened["door"].wait()
        return x

    run = manual.run(box(wait, "(x) -> (y)"))
    asked = run.ask({"x": 1})
    with pytest.raises(AskTimeout, match=r"system is idle\. It waits for calls of /wait, 1"):
        asked.result()
    with pytest.raises(NetTimeout, match=r"system is idle\. It waits for calls of /wait, 2"):
        run.trace({"x": 1}, timeout=3)
    with pytest.raises(NetTimeout, match="/wait"):
        run.finish()
    run.cancel()
    with pytest.raises(Exception, match="cancelled"):
        asked.result()


def test_features_a_manual_system_lacks_are_errors_of_the_box(manual: ManualSystem) -> None:
    async def elsewhere(x: int) -> int:
        return await asyncio.to_thread(double, x)

    run = manual.run(box(elsewhere, "(x) -> (y)"))
    with pytest.raises(BoxError, match=r"/elsewhere failed.*a manual system has no threads"):
        run.ask({"x": 1}).result()


@pytest.mark.parametrize("kind", ["cell", "join"])
def test_cells_give_up_by_the_systems_clock(kind: str) -> None:
    letters: list[DeadLetter] = []
    cell: Net = sync("{a}", "{b}", timeout=60)
    net = cell if kind == "cell" else join("id", ("a", "b"), timeout=60)
    with ManualSystem() as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(net)
        run.send({"a": 1, "id": 1})
        system.advance(59)
        assert run.statistics().in_cells == 1
        system.advance(1)
        assert run.statistics().in_cells == 0
        assert [(each.message, each.reason) for each in letters] == [
            ({"a": 1, "id": 1}, "unpaired")
        ]
        run.send({"a": 2, "id": 1})
        system.advance(59)
        run.send({"b": 3, "id": 1})
        assert run.finish() == [{"a": 2, "b": 3, "id": 1}]
    assert len(letters) == 1


def test_each_cell_gives_up_at_its_own_time(manual: ManualSystem) -> None:
    at: dict[Any, float] = {}
    manual.dead_letters.subscribe(lambda letter: at.update({letter.message["id"]: manual.now}))
    slow = filtering("{slow} -> {a=slow}") >> join("id", ("a", "b"), timeout=100)
    quick = filtering("{quick} -> {a=quick}") >> join("id", ("a", "b"), timeout=10)
    run = manual.run(choice(slow, quick))
    for number in range(4):
        run.send([{"slow": 0, "id": f"slow {number}"}, {"quick": 0, "id": f"quick {number}"}])
        manual.advance(7)
    manual.advance(1000)
    slow_ones = {f"slow {number}": 7.0 * number + 100 for number in range(4)}
    assert at == slow_ones | {f"quick {number}": 7.0 * number + 10 for number in range(4)}
    run.cancel()


def test_a_trace_has_the_systems_times(manual: ManualSystem) -> None:
    manual.advance(5)
    trace = manual.run(BOXES["coroutine"] >> filtering("{y} -> {y}")).trace({"x": 1})
    assert [(step.what, step.seconds) for step in trace.steps] == [
        ("came", 0.0),
        ("came", 1.0),
        ("left", 1.0),
    ]
