"""Every kind of user of channels runs the same script.

A script is `async def script(words, ...)`. `words` are the user's words for what may wait: an actor
or a coroutine awaits, a thread sleeps in put() and get().
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from callboard import Actor, ActorSystem
from callboard.channels import ChannelClosed, Receiver, Selection, Sender, Task

WAIT = 30.0  # seconds, after which a test has failed
Script = Callable[..., Coroutine[Any, Any, Any]]


class Awaits:
    """The words of actors and coroutines."""

    async def send(self, sender: Sender[Any], value: Any, timeout: float | None = WAIT) -> None:
        await sender.send(value, timeout)

    async def receive(self, receiver: Receiver[Any], timeout: float | None = WAIT) -> Any:
        return await receiver.receive(timeout)

    async def receive_many(self, receiver: Receiver[Any], most: int) -> list[Any]:
        return await receiver.receive_many(most, WAIT)

    async def ready(self, selection: Selection[Any], timeout: float | None = WAIT) -> Any:
        return await selection.ready(timeout)

    async def values(self, receiver: Receiver[Any]) -> AsyncIterator[Any]:
        async for value in receiver:
            yield value


class Blocks(Awaits):
    """The words of threads. Its coroutines never wait."""

    async def send(self, sender: Sender[Any], value: Any, timeout: float | None = WAIT) -> None:
        sender.put(value, timeout)

    async def receive(self, receiver: Receiver[Any], timeout: float | None = WAIT) -> Any:
        return receiver.get(timeout)

    async def receive_many(self, receiver: Receiver[Any], most: int) -> list[Any]:
        return receiver.get_many(most, WAIT)

    async def ready(self, selection: Selection[Any], timeout: float | None = WAIT) -> Any:
        return selection.wait(timeout)

    async def values(self, receiver: Receiver[Any]) -> AsyncIterator[Any]:
        for value in receiver:
            yield value


def run_blocking(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waited")


class ScriptTask(Task):
    def __init__(self, done: Future[Any], script: Script, args: tuple[Any, ...]) -> None:
        self.done, self.script, self.args = done, script, args

    async def run(self) -> None:
        try:
            self.done.set_result(await self.script(Awaits(), *self.args))
        except Exception as error:
            self.done.set_exception(error)


class ScriptActor(Actor[str]):
    def __init__(self, done: Future[Any], script: Script, args: tuple[Any, ...]) -> None:
        self.done, self.script, self.args = done, script, args

    async def receive(self, message: str) -> None:
        try:
            self.done.set_result(await self.script(Awaits(), *self.args))
        except Exception as error:
            self.done.set_exception(error)
        self.stop()


class DedicatedActor(Actor[str]):
    def __init__(self, done: Future[Any], script: Script, args: tuple[Any, ...]) -> None:
        self.done, self.script, self.args = done, script, args

    def receive(self, message: str) -> None:
        try:
            self.done.set_result(run_blocking(self.script(Blocks(), *self.args)))
        except Exception as error:
            self.done.set_exception(error)
        self.stop()


def in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Start `work` in a thread that nobody waits for at the interpreter's end."""
    done: Future[Any] = Future()

    def body() -> None:
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=body, daemon=True).start()
    return done


def run_in_trio(script: Script, *args: Any) -> Any:
    import trio

    return trio.run(script, *args)


KINDS = ["task", "event_loop_task", "actor", "event_loop_actor", "dedicated", "thread", "coroutine"]
if importlib.util.find_spec("trio") is not None:
    KINDS.append("trio")


class Users:
    """Starts scripts, in a system where they need one."""

    def __init__(self, system: ActorSystem) -> None:
        self.system = system

    def start(self, kind: str, script: Script, *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        spawn = self.system.spawn
        match kind:
            case "task":
                spawn(ScriptTask, done, script, args)
            case "event_loop_task":
                spawn(ScriptTask, done, script, args, event_loop=True)
            case "actor":
                spawn(ScriptActor, done, script, args).tell("go")
            case "event_loop_actor":
                spawn(ScriptActor, done, script, args, event_loop=True).tell("go")
            case "dedicated":
                spawn(DedicatedActor, done, script, args, dedicated=True).tell("go")
            case "thread":
                return in_thread(lambda: run_blocking(script(Blocks(), *args)))
            case "coroutine":
                return in_thread(lambda: asyncio.run(script(Awaits(), *args)))
            case "trio":
                return in_thread(lambda: run_in_trio(script, Awaits(), *args))
        return done

    def run(self, kind: str, script: Script, *args: Any) -> Any:
        """Run a script to its end, and return its result."""
        return self.start(kind, script, *args).result(WAIT)


def left_in(receiver: Receiver[Any]) -> list[Any]:
    """Take what is there."""
    values = []
    nothing = object()
    try:
        while (value := receiver.receive_nowait(nothing)) is not nothing:
            values.append(value)
    except ChannelClosed:
        pass
    return values
