"""The right-hand code in the tables of docs/coming-from.md runs, and does what the page says."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    AskCancelled,
    Supervision,
    Terminated,
    first,
    gather,
)
from callboard.asks import CircuitBreaker, RateLimit, Retry
from callboard.routers import BroadcastRouter, KeyRouter, RoundRobinRouter, Subscribe, Topic
from callboard.streams import entry
from callboard.testing import ManualSystem
from tests.pools.workers import Double

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"
LIMIT = 30.0
CELL = re.compile(r"^\|.*\| `([^`]+)` \|$", re.MULTILINE)
"""A row of a table whose right-hand cell is one piece of code."""


class Refused(Exception):
    """Raised by an actor that refuses a message."""


NAMES: dict[str, Any] = {
    "BroadcastRouter": BroadcastRouter,
    "CircuitBreaker": CircuitBreaker,
    "KeyRouter": KeyRouter,
    "RateLimit": RateLimit,
    "Refused": Refused,
    "Retry": Retry,
    "RoundRobinRouter": RoundRobinRouter,
    "Supervision": Supervision,
    "first": first,
    "gather": gather,
    "m": 1,
}
"""The names that the page's lines may use."""


class Worker(Actor[Any]):
    """Keeps its messages, and answers with each; calls a callable message with itself."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def receive(self, message: Any) -> Any:
        if callable(message):
            answer = message(self)
            return await answer if inspect.isawaitable(answer) else answer
        if message == "refuse":
            raise Refused("no")
        self.seen.append(message)
        return message


CODE = dict.fromkeys(CELL.findall(PAGE.read_text(encoding="utf-8")))


def test_each_piece_of_code_has_a_test() -> None:
    tests = inspect.getsource(inspect.getmodule(run))  # type: ignore[arg-type]
    assert [code for code in CODE if code not in tests] == []


def on_page(code: str) -> str:
    """Return the code, which must be in a table of the page."""
    assert code in CODE
    return code


async def run(code: str, **names: Any) -> Any:
    """Run this code of the page with these names, and return the value of its expression."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    known = {**NAMES, "Worker": Worker, **names}
    value = eval(compile(on_page(code), str(PAGE), "eval", flags), known)
    return await value if inspect.iscoroutine(value) else value


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem() as system:
        yield system


@pytest.fixture
def ref(system: ActorSystem) -> ActorRef[Any]:
    """Return an actor at /w."""
    return system.spawn(Worker, name="w")


async def in_actor(host: ActorRef[Any], code: str, **names: Any) -> Any:
    """Run this code of the page in an actor, whose `self` it uses."""
    compiled = compile(on_page(code), str(PAGE), "eval")
    return await host.ask(
        lambda actor: bool(eval(compiled, {"self": actor, "m": 1, **names})) or None
    )


async def seen(ref: ActorRef[Any]) -> list[Any]:
    found: list[Any] = await ref.ask(lambda actor: actor.seen)
    return found


async def until_seen(ref: ActorRef[Any], expected: list[Any]) -> None:
    """Wait until an actor has seen these messages, and fail after `LIMIT` seconds."""
    deadline = time.monotonic() + LIMIT
    while (found := await seen(ref)) != expected:
        assert time.monotonic() < deadline, f"expected {expected} in {LIMIT} s, got {found}"
        await asyncio.sleep(0)


@pytest.mark.parametrize("code", ["system.spawn(Worker)", "await system.spawn(Worker).ready"])
async def test_actors_are_made(code: str, system: ActorSystem) -> None:
    ref = await run(code, system=system)
    assert await ref.ask(2) == 2


@pytest.mark.parametrize("code", ["ref.tell(m)", "await ref.atell(m)"])
async def test_messages_are_told(code: str, ref: ActorRef[Any]) -> None:
    await run(code, ref=ref)
    assert await seen(ref) == [1]


def test_a_thread_asks() -> None:
    with ActorSystem() as system:
        ref = system.spawn(Worker)
        assert eval(on_page("ref.ask(m).result(30)"), {"ref": ref, "m": 1}) == 1


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("await ref.ask(m)", 1),
        ("await ref.ask(m, timeout=30)", 1),
        ("await gather(ref.ask(1), ref.ask(2))", [1, 2]),
        ("await ref.ask(1).map(str)", "1"),
        ("await Retry(attempts=5).call(ref.ask, m)", 1),
        ("await CircuitBreaker(failures=5).call(ref.ask, m)", 1),
        ("await RateLimit(per_second=10).call(ref.ask, m)", 1),
    ],
)
async def test_asks_are_answered(code: str, answer: Any, ref: ActorRef[Any]) -> None:
    assert await run(code, ref=ref) == answer


async def test_the_first_answer_is_enough(ref: ActorRef[Any]) -> None:
    assert await run("await first(ref.ask(1), ref.ask(2))", ref=ref) in (1, 2)


async def test_an_ask_is_given_up(ref: ActorRef[Any]) -> None:
    asked: list[Any] = []

    class Noting:
        def ask(self, message: Any) -> Any:
            asked.append(ref.ask(lambda actor: actor.sleep(3600.0)))
            return asked[0]

    assert await run("ref.ask(m).cancel()", ref=Noting()) is True
    with pytest.raises(AskCancelled):
        await asked[0]
    assert await ref.ask(2) == 2  # it handles the next message


async def test_an_answer_comes_as_a_message(system: ActorSystem, ref: ActorRef[Any]) -> None:
    host = system.spawn(Worker)
    await in_actor(host, "self.pipe(ref.ask(m))", ref=ref)
    await until_seen(host, [1])


async def test_a_stop_behind_the_messages_that_wait_handles_them(ref: ActorRef[Any]) -> None:
    answers = [ref.ask(number) for number in range(5)]
    await run("ref.stop(after_queue=True)", ref=ref)
    assert await gather(*answers) == [*range(5)]
    assert (await run("await ref.ended", ref=ref)).reason == "stopped"


async def test_a_stop_now_ends_it(ref: ActorRef[Any]) -> None:
    await run("ref.stop()", ref=ref)
    assert (await run("await ref.ended", ref=ref)).reason == "stopped"


async def test_an_actor_is_told_of_an_end(system: ActorSystem, ref: ActorRef[Any]) -> None:
    host = system.spawn(Worker)
    await in_actor(host, "self.watch(ref)", ref=ref)
    ref.stop()
    await until_seen(host, [Terminated(ref)])


def test_a_system_is_stopped() -> None:
    system = ActorSystem()
    ref = system.spawn(Worker)
    eval(on_page("system.stop()"), {"system": system})
    assert system.is_closed
    assert not ref.is_alive


async def test_an_actor_is_restarted_after_a_failure(system: ActorSystem) -> None:
    ref = await run('system.spawn(Worker, supervision="restart")', system=system)
    await ref.ask(1)
    with pytest.raises(Refused):
        await ref.ask("refuse")
    assert await seen(ref) == []  # it is a new object


async def test_an_actor_refuses_a_message_and_continues(system: ActorSystem) -> None:
    ref = await run(
        "system.spawn(Worker, supervision=Supervision(expected=(Refused,)))", system=system
    )
    await ref.ask(1)
    with pytest.raises(Refused):
        await ref.ask("refuse")
    assert await seen(ref) == [1]
    assert system.dead_letters.count == 0


async def test_an_actor_cleans_up_in_a_coroutine(system: ActorSystem) -> None:
    closed: list[int] = []

    async def close() -> None:
        closed.append(1)

    names: dict[str, Any] = {"close": close}
    exec(on_page("async def on_stop(self): await close()"), names)
    cls = type("Closing", (Worker,), {"on_stop": names["on_stop"]})
    ref = system.spawn(cls)
    await ref.ask(1)
    ref.stop()
    await ref.ended
    assert closed == [1]


class Timed(Worker):
    """A worker with a plain `receive`, for a manual clock."""

    def receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.seen.append(message)
        return None


@pytest.mark.parametrize(
    ("code", "times", "mine", "others"),
    [
        ("self.after(1, m)", 1, [1], []),
        ("self.after(1, m, to=ref)", 1, [], [1]),
        ("self.every(1, m)", 1, [1, 1, 1], []),
        ('self.after(1, m, key="idle")', 2, [1], []),
    ],
)
def test_timers_send_messages(code: str, times: int, mine: list[int], others: list[int]) -> None:
    with ManualSystem() as system:
        host, ref = system.spawn(Timed), system.spawn(Timed)
        compiled = compile(on_page(code), str(PAGE), "eval")
        for _ in range(times):
            host.tell(lambda actor: eval(compiled, {"self": actor, "m": 1, "ref": ref}) and None)
            system.advance(0.5)
        system.advance(3.0)
        for actor, expected in ((host, mine), (ref, others)):
            answer = actor.ask(lambda actor: actor.seen)
            system.run_until_idle()
            assert answer.result() == expected


async def test_several_messages_are_in_the_middle_at_one_time(system: ActorSystem) -> None:
    ref = await run("system.spawn(Worker, concurrency=100)", system=system)
    asked = [ref.ask(lambda actor: actor.sleep(3600.0)) for _ in range(99)]
    assert await ref.ask(3) == 3  # though 99 wait
    for each in asked:
        each.cancel()


async def test_routers_stand_for_several(system: ActorSystem) -> None:
    router = await run("RoundRobinRouter.spawn(system, Worker, routees=4)", system=system)
    for number in range(8):
        router.tell(number)
    assert [await seen(ref) for ref in router.refs] == [[n, n + 4] for n in range(4)]
    by_key = await run('KeyRouter.spawn(system, Worker, routees=4, by="user")', system=system)
    for number in range(8):
        by_key.tell({"user": number % 2})
    found = [{row["user"] for row in await seen(ref)} for ref in by_key.refs]
    assert sorted(user for users in found for user in users) == [0, 1]


async def test_all_routees_are_told(system: ActorSystem) -> None:
    await run("BroadcastRouter.spawn(system, Worker, routees=4).tell(m)", system=system)
    for ref in system.find(Worker):
        assert await seen(ref) == ([] if ref.path == "/w" else [1])


async def test_subscribers_of_a_topic_are_told(system: ActorSystem, ref: ActorRef[Any]) -> None:
    topic = system.spawn(Topic)
    topic.tell(Subscribe(ref, int))
    await run("topic.tell(m)", topic=topic)
    topic.tell("another class")
    await until_seen(ref, [1])


def test_an_actor_is_in_another_process(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(str(root))  # the process imports the class from there
    with ActorSystem() as system:
        pool = eval(
            on_page("system.pool(Worker, processes=1)"), {"system": system, "Worker": Double}
        )
        assert pool.ask(4).result(LIMIT) == 8


@pytest.mark.parametrize(
    "code", ['system.find("/w")', "system.find(Worker)", 'await system.afind("/w")']
)
async def test_actors_are_found(code: str, system: ActorSystem, ref: ActorRef[Any]) -> None:
    found = await run(code, system=system)
    assert found in (ref, [ref])


def test_a_stream_asks_in_order() -> None:
    with ActorSystem() as system:
        ref = system.spawn(Worker)
        graph = eval(
            on_page("stream.ask(ref, in_flight=64)"), {"stream": entry("rows"), "ref": ref}
        )
        run = system.run(graph.collect())
        run.send("rows", range(200))
        assert run.finish() == [*range(200)]
