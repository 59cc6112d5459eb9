"""The actors that call boxes elsewhere: on the event loop, and on threads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from contextlib import aclosing, closing, suppress
from time import perf_counter
from typing import Any, Protocol

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.nets.kernel.building import is_async_function
from callboard.nets.running.messages import CallEnded, CallOutput
from callboard.scheduling.handle import Handle
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.worker import WorkerThread


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
            return self._conductor.ask(CallOutput(self._call, values, self._attempt, waits=True))
        if values:
            self._conductor.tell(CallOutput(self._call, values, self._attempt))
        return None

    def end(self, error: BaseException | None) -> None:
        """Say that the call is over."""
        if error is None and self._held:
            self._conductor.tell(CallOutput(self._call, self._held, self._attempt))
        seconds = perf_counter() - self._began
        self._conductor.tell(CallEnded(self._call, error, self._attempt, seconds))


MANUAL_CALLERS = 8  # on a manual system, so that its seed says which of several calls begins first


class Spawner(Protocol):
    """The run's actor, whose children the callers are."""

    @property
    def ref(self) -> Any:
        """Its ref."""

    @property
    def system(self) -> Any:
        """The system that it lives in."""

    def spawn(self, cls: type[Any], /, *args: Any, **kwargs: Any) -> ActorRef[Any]:
        """Make a child."""


class Callers:
    """The actors that call boxes elsewhere, made when they are needed, and used again."""

    def __init__(self, of: Spawner, *, manual: bool) -> None:
        self._of = of
        self._loop_callers: list[ActorRef[Any]] = []
        self._most_loop_callers = MANUAL_CALLERS if manual else 1
        self._idle: dict[Any, list[ActorRef[Any]]] = {}  # callers on threads, by box and place
        self._busy: dict[tuple[Any, int], tuple[Any, ActorRef[Any]]] = {}
        self._classes: dict[Any, type[ThreadCaller]] = {}

    def call(self, call: Any) -> bool:
        """Have a call made; tell whether that one sees to its timeout itself."""
        if is_async_function(call.function):
            self._loop_caller().ask(call)  # a system is not idle before the answer
            return True
        box = call.box
        place = box.place_of(call)
        idle = self._idle.setdefault((box, place), [])
        caller = idle.pop() if idle else self._thread_caller(box, place)
        self._busy[call, call.tries] = (box, place), caller
        caller.tell(call)
        return False

    def is_free(self, call: Any, attempt: int) -> None:
        """Use the caller for others: the call is over."""
        known = self._busy.pop((call, attempt), None)
        if known is not None:
            self._idle[known[0]].append(known[1])

    def _loop_caller(self) -> ActorRef[Any]:
        callers = self._loop_callers
        if len(callers) < self._most_loop_callers:
            callers.append(self._spawn(LoopCaller, event_loop=True))
        else:
            callers.append(callers.pop(0))
        return callers[-1]

    def _thread_caller(self, box: Any, place: Any) -> ActorRef[Any]:
        """Make an actor that calls a box where its hint says: a policy, or a worker's number."""
        # On a worker a call would hold up the run's own actor, and with an interpreter lock, one
        # worker at a time runs Python, even if a call releases it.
        dedicated = box.options.dedicated or place is None
        options: dict[str, Any] = {"dedicated": dedicated}
        cls = self._classes.get(box)
        if cls is None:  # a class for each box: policies and statistics go by classes
            cls = self._classes[box] = type(box.path, (ThreadCaller,), {"__slots__": ()})
        if place is not None and not dedicated:
            options["placement"] = Numbered(place) if isinstance(place, int) else place
        return self._spawn(cls, **options)

    def _spawn(self, cls: type[Any], **options: Any) -> ActorRef[Any]:
        caller = self._of.spawn(cls, self._of.ref, **options)
        # The run makes dead letters of the records of calls that nobody handles.
        self._of.system.dead_letters.expect_wake_ups(caller)
        return caller


class Numbered(PlacementPolicy):
    """The worker of a number, counted round if there are fewer."""

    def __init__(self, number: int) -> None:
        self._number = number

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker."""
        return workers[self._number % len(workers)]
