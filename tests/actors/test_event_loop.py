"""asyncio in `async def receive`: actors that were spawned with `event_loop=True`."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, AskDeadlock, CallboardError, Future, SpawnError
from tests.actors.asyncio_callers import Caller, Doubler, slept


@pytest.fixture
def caller(system: ActorSystem) -> ActorRef[Any]:
    return system.spawn(Caller, event_loop=True)


# --- asyncio in an actor --------------------------------------------------------------------------


async def gathered(actor: Caller) -> Any:
    async def one(number: int) -> int:
        await asyncio.sleep(0)
        return number

    parts = [one(number) for number in range(10)]
    try:
        return await asyncio.gather(*parts)
    finally:
        for part in parts:  # without a loop, none has begun
            part.close()


async def waited_for(actor: Caller) -> Any:
    try:
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), timeout=0.001)
    except TimeoutError:
        return "not in time"


async def timed(actor: Caller) -> Any:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        return "not in time"


async def grouped(actor: Caller) -> Any:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(slept(actor)) for _ in range(3)]
    return [task.result() for task in tasks]


async def in_a_thread(actor: Caller) -> Any:
    return await asyncio.to_thread(lambda: "from a thread")


async def by_a_stream(actor: Caller) -> Any:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"over a socket\n")
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("use", "answer"),
    [
        (gathered, list(range(10))),
        (slept, "awake"),
        (waited_for, "not in time"),
        (timed, "not in time"),
        (grouped, ["awake"] * 3),
        (in_a_thread, "from a thread"),
        (by_a_stream, b"OVER A SOCKET\n"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_actor_can_use_asyncio(caller: ActorRef[Any], use: Any, answer: Any) -> None:
    for _ in range(3):
        assert caller.ask(use).result(timeout=30) == answer


@pytest.mark.parametrize("use", [gathered, slept, waited_for, timed, grouped, in_a_thread])
def test_without_an_event_loop_the_error_says_what_to_do(system: ActorSystem, use: Any) -> None:
    with pytest.raises(RuntimeError, match="spawned with event_loop=True"):
        system.spawn(Caller).ask(use).result(timeout=30)


# --- as ever --------------------------------------------------------------------------------------


def test_callboards_futures_are_awaited_too(system: ActorSystem, caller: ActorRef[Any]) -> None:
    doubler = system.spawn(Doubler)

    async def ask_in_all_ways(actor: Caller) -> Any:
        async def ask(number: int) -> int:
            answer: int = await doubler.ask(number)
            return answer

        await actor.sleep(0)
        first = await doubler.ask(1)
        return [first, *await asyncio.gather(ask(2), ask(3))]

    assert caller.ask(ask_in_all_ways).result(timeout=30) == [2, 4, 6]


def test_one_message_is_handled_at_a_time(system: ActorSystem) -> None:
    class Careful(Actor[int]):
        def __init__(self) -> None:
            self.busy = False
            self.handled: list[int] = []

        async def receive(self, message: int) -> list[int]:
            assert not self.busy
            self.busy = True
            await asyncio.sleep(0)
            self.handled.append(message)
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
            self.busy = False
            return self.handled

    ref = system.spawn(Careful, event_loop=True)
    answers = [ref.ask(number) for number in range(100)]
    assert answers[-1].result(timeout=30) == list(range(100))


def test_many_actors_wait_on_the_loop_at_the_same_time(system: ActorSystem) -> None:
    met: list[int] = []
    everyone = asyncio.Event()

    class Guest(Actor[int]):
        async def receive(self, message: int) -> str:
            met.append(message)
            if len(met) == 100:
                everyone.set()
            await everyone.wait()
            return "met them all"

    answers = [system.spawn(Guest, event_loop=True).ask(number) for number in range(100)]
    assert {answer.result(timeout=30) for answer in answers} == {"met them all"}


def test_the_actor_sends_what_its_loop_sends(system: ActorSystem, caller: ActorRef[Any]) -> None:
    class Who(Actor[Any]):
        def receive(self, message: Any) -> Any:
            if message == "told":
                told.append(self.sender)
            return self.sender

    told: list[Any] = []
    who = system.spawn(Who)

    async def find_out(actor: Caller) -> Any:
        async def ask() -> Any:
            return await who.ask("asked")

        assert actor.ref is caller
        who.tell("told")
        before = actor.sender
        await asyncio.sleep(0)
        return [before, actor.sender, await ask(), *await asyncio.gather(ask(), ask())]

    class Client(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return caller.ask(message)

    client = system.spawn(Client)
    assert client.ask(find_out).result(timeout=30) == [client, client, caller, caller, caller]
    assert told == [caller]


def test_a_task_left_behind_has_no_sender(system: ActorSystem, caller: ActorRef[Any]) -> None:
    class Who(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return self.sender

    who = system.spawn(Who)
    gate: Future[None] = Future()
    tasks: list[asyncio.Task[Any]] = []
    done = threading.Event()
    senders: list[Any] = []

    async def leave_behind(actor: Caller) -> None:
        async def later() -> None:
            await gate
            senders.append(await who.ask("late"))
            done.set()

        tasks.append(asyncio.create_task(later()))

    caller.ask(leave_behind).result(timeout=30)
    gate.set_result(None)
    assert done.wait(30)
    assert senders == [None]


def test_context_variables_are_kept_across_the_awaits_of_a_message(caller: ActorRef[Any]) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def set_and_wait(actor: Caller) -> str:
        variable.set("set")
        await asyncio.sleep(0)
        return variable.get()

    assert caller.ask(set_and_wait).result(timeout=30) == "set"
    assert variable.get() == "unset"


def test_result_on_the_loop_is_refused(system: ActorSystem, caller: ActorRef[Any]) -> None:
    doubler = system.spawn(Doubler)

    async def block(actor: Caller) -> Any:
        return Future[None]().result(timeout=30)

    async def drain(actor: Caller) -> Any:
        actor.system.drain()

    async def block_another_thread(actor: Caller) -> Any:
        return await asyncio.to_thread(doubler.ask(1).result, 30)

    with pytest.raises(CallboardError, match="would block the event loop"):
        caller.ask(block).result(timeout=30)
    other = system.spawn(Caller, event_loop=True)
    with pytest.raises(CallboardError, match="would wait for the actor itself"):
        other.ask(drain).result(timeout=30)
    another = system.spawn(Caller, event_loop=True)
    assert another.ask(block_another_thread).result(timeout=30) == 2


class Link(Actor[Any]):
    """Asks the next link of a chain."""

    next_link: ActorRef[Any] | None = None

    async def receive(self, message: Any) -> Any:
        if isinstance(message, ActorRef):
            self.next_link = message
            return None
        assert self.next_link is not None
        return await self.next_link.ask(message)


@pytest.mark.parametrize("on_loop", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_cycle_on_the_loop_is_named(system: ActorSystem, length: int, on_loop: int) -> None:
    links = [system.spawn(Link, event_loop=number < on_loop) for number in range(length)]
    for number, link in enumerate(links):
        link.ask(links[(number + 1) % length]).result(timeout=30)
    with pytest.raises(AskDeadlock, match="each waits for the next: ") as caught:
        links[0].ask("round and round").result(timeout=30)
    path = str(caught.value).removeprefix("each waits for the next: ").split(" -> ")
    assert path[0] == path[-1]
    assert set(path) == {link.path for link in links}


# --- options that do not go together --------------------------------------------------------------


def test_an_event_loop_is_refused_where_there_can_be_none(system: ActorSystem) -> None:
    with pytest.raises(SpawnError, match="Caller cannot be dedicated and have event_loop=True"):
        system.spawn(Caller, event_loop=True, dedicated=True)
