"""Actors that call boxes elsewhere: on the event loop, and on threads."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing, closing, suppress
from time import perf_counter
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.nets.running.messages import Ended, Given


class LoopCaller(Actor[Any]):
    """Calls coroutine functions and asynchronous generators, many at a time, on the event loop."""

    __slots__ = ("conductor", "loop", "tasks")

    def __init__(self, conductor: ActorRef[Any]) -> None:
        self.conductor = conductor
        self.tasks: set[asyncio.Task[None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    async def receive(self, call: Any) -> Future[None]:
        """Begin a call, and answer when it has ended. On the event loop's thread."""
        self.loop = asyncio.get_running_loop()
        ended: Future[None] = Future()
        task = self.loop.create_task(self._call(call, call.tries, ended))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return ended

    async def _call(self, call: Any, attempt: int, ended: Future[None]) -> None:
        giving = Giving(self.conductor, call, attempt)
        try:
            async with asyncio.timeout(call.box.options.timeout):
                result = call.function(*call.arguments)
                if inspect.isasyncgen(result):
                    async with aclosing(result):
                        async for value in result:
                            waiting = giving.give(value, is_one_of_many=True)
                            if waiting is not None:
                                await waiting
                else:
                    giving.give(await result)
        except BaseException as error:  # SystemExit would end the event loop
            giving.end(error)
        else:
            giving.end(None)
        ended.set_result(None)

    def on_stop(self) -> None:
        """Cancel the calls that are running, on the event loop's thread."""
        if self.loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and its tasks are gone
                self.loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        for task in tuple(self.tasks):
            task.cancel()


class ThreadCaller(Actor[Any]):
    """Calls functions and generators, one at a time, on a worker's thread or one of its own."""

    __slots__ = ("conductor",)

    def __init__(self, conductor: ActorRef[Any]) -> None:
        self.conductor = conductor

    async def receive(self, call: Any) -> None:
        """Make a call. A generator whose outputs have to wait keeps no worker waiting."""
        giving = Giving(self.conductor, call, call.tries)
        try:
            result = call.function(*call.arguments)
            if inspect.isgenerator(result):
                with closing(result):
                    for value in result:
                        waiting = giving.give(value, is_one_of_many=True)
                        if waiting is not None:
                            await waiting
            else:
                giving.give(result)
        except BaseException as error:
            giving.end(error)
        else:
            giving.end(None)


class Giving:
    """Hands on the outputs of a call: as they come, or together at its end if the box holds them.

    Each `PATIENCE`th output of a generator waits until it is in the net, so that a generator is not
    further ahead of it than that. If they are held, it waits until the net has said that the call
    is still wanted.
    """

    PATIENCE = 64

    def __init__(self, conductor: ActorRef[Any], call: Any, attempt: int) -> None:
        self._conductor = conductor
        self._call = call
        self._attempt = attempt
        self._given = 0
        self._began = perf_counter()
        self._held: list[Any] | None = [] if call.box.options.holds_outputs else None

    def give(self, value: Any, *, is_one_of_many: bool = False) -> Future[None] | None:
        """Hand an output on; None is none. Return a future if the next one has to wait for it."""
        if value is None:
            return None
        values = [value]
        if self._held is not None:
            self._held.append(value)
            values = []
        self._given += 1
        if is_one_of_many and self._given % self.PATIENCE == 0:
            return self._conductor.ask(Given(self._call, values, self._attempt, waits=True))
        if values:
            self._conductor.tell(Given(self._call, values, self._attempt))
        return None

    def end(self, error: BaseException | None) -> None:
        """Say that the call is over."""
        if error is None and self._held:
            self._conductor.tell(Given(self._call, self._held, self._attempt))
        seconds = perf_counter() - self._began
        self._conductor.tell(Ended(self._call, error, self._attempt, seconds))
