"""The actors that call boxes for a coordinator: on the event loop, on threads, and on workers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from time import perf_counter, thread_time_ns
from typing import Any, Protocol

from callboard._inside.answers.future import Future
from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.nets.kernel.node_builder import is_async_function
from callboard.nets.running.batch_calls import called
from callboard.nets.running.messages import (
    BatchCalled,
    CallEnded,
    CallOutput,
    CallTimeout,
    RetryCall,
)
from callboard.scheduling.handle import Handle
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.worker import WorkerThread


class LoopCaller(Actor[Any]):
    """Calls coroutine functions and asynchronous generators, many at a time, on the event loop."""

    __slots__ = ("coordinator", "loop", "tasks")

    def __init__(self, coordinator: ActorRef[Any]) -> None:
        self.coordinator = coordinator
        self.tasks: set[asyncio.Task[None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    async def receive(self, call: Any) -> Future[None]:
        """Begin a call, and answer at its end. On the event loop's thread."""
        self.loop = asyncio.get_running_loop()
        ended: Future[None] = Future()
        task = self.loop.create_task(self._call(call, call.tries, ended))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return ended

    async def _call(self, call: Any, attempt: int, ended: Future[None]) -> None:
        outputs = OutputSender(self.coordinator, call, attempt)
        try:
            async with asyncio.timeout(call.box.options.timeout):
                result = call.function(*call.arguments)
                if inspect.isasyncgen(result):
                    async with aclosing(result):
                        async for value in result:
                            waiting = outputs.give(value, is_one_of_many=True)
                            if waiting is not None:
                                await waiting
                else:
                    outputs.give(await result)
        except BaseException as error:  # SystemExit would end the event loop
            outputs.end(error)
        else:
            outputs.end(None)
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
    """Calls functions and generators, one at a time, on a worker's thread or a dedicated one."""

    __slots__ = ("coordinator",)

    def __init__(self, coordinator: ActorRef[Any]) -> None:
        self.coordinator = coordinator

    async def receive(self, call: Any) -> None:
        """Make a call. A generator whose outputs have to wait does not hold up the worker."""
        outputs = OutputSender(self.coordinator, call, call.tries)
        try:
            result = call.function(*call.arguments)
            if inspect.isgenerator(result):
                with closing(result):
                    for value in result:
                        waiting = outputs.give(value, is_one_of_many=True)
                        if waiting is not None:
                            await waiting
            else:
                outputs.give(result)
        except BaseException as error:
            outputs.end(error)
        else:
            outputs.end(None)


@dataclass(frozen=True, slots=True)
class RowsToCall:
    """The values of the calls of a batch. A run that ends removes those that are left."""

    batch: Any
    function: Any
    rows: list[tuple[Any, ...]] = field(repr=False)
    generates: bool


class BatchCaller(Actor[RowsToCall]):
    """Calls functions for batches of records, on a worker's thread."""

    __slots__ = ("coordinator",)

    def __init__(self, coordinator: ActorRef[Any]) -> None:
        self.coordinator = coordinator

    def receive(self, message: RowsToCall) -> None:
        """Call a function for each record of a batch."""
        begun = thread_time_ns()
        made = called(message.function, message.rows, generates=message.generates)
        processor = thread_time_ns() - begun
        self.coordinator.tell(BatchCalled(message.batch, *made, processor))


class OutputSender:
    """Passes on the outputs of a call: as they are made, or at the end if the box collects them.

    Each `AHEAD`th output of a generator waits until it is in the net, so that a generator is not
    further ahead of it. If they are collected, it waits until the coordinator has said that the
    call is still needed.
    """

    AHEAD = 64

    def __init__(self, coordinator: ActorRef[Any], call: Any, attempt: int) -> None:
        self._coordinator = coordinator
        self._call = call
        self._attempt = attempt
        self._given = 0
        self._began = perf_counter()
        self._collected: list[Any] | None = [] if call.box.options.holds_outputs else None

    def give(self, value: Any, *, is_one_of_many: bool = False) -> Future[None] | None:
        """Pass on an output, if any. Return a future if the next one has to wait for it."""
        if value is None:
            return None
        values = [value]
        if self._collected is not None:
            self._collected.append(value)
            values = []
        self._given += 1
        if is_one_of_many and self._given % self.AHEAD == 0:
            return self._coordinator.ask(CallOutput(self._call, values, self._attempt, waits=True))
        if values:
            self._coordinator.tell(CallOutput(self._call, values, self._attempt))
        return None

    def end(self, error: BaseException | None) -> None:
        """End the call."""
        if error is None and self._collected:
            self._coordinator.tell(CallOutput(self._call, self._collected, self._attempt))
        seconds = perf_counter() - self._began
        self._coordinator.tell(CallEnded(self._call, error, self._attempt, seconds))


MANUAL_CALLERS = 8  # on a manual system, so that its seed says which of several calls begins first


class Spawner(Protocol):
    """The run's actor, which is the parent of the callers."""

    @property
    def ref(self) -> Any:
        """Its ref."""

    @property
    def system(self) -> Any:
        """The system that it lives in."""

    def spawn(self, cls: type[Any], /, *args: Any, **kwargs: Any) -> ActorRef[Any]:
        """Make a child."""

    def after(self, seconds: float, message: Any) -> Any:
        """Schedule a message to itself."""


class Callers:
    """The actors that call boxes for the coordinator, made when they are needed, and reused."""

    def __init__(self, of: Spawner, *, manual: bool) -> None:
        self._of = of
        self._loop_callers: list[ActorRef[Any]] = []
        self._most_loop_callers = MANUAL_CALLERS if manual else 1
        self._idle: dict[Any, list[ActorRef[Any]]] = {}  # callers on threads, by box and place
        self._busy: dict[tuple[Any, int], tuple[Any, ActorRef[Any]]] = {}
        self._classes: dict[Any, type[ThreadCaller]] = {}
        self._batch_callers: list[ActorRef[Any]] = []  # by the numbers of their workers
        self._timers: dict[Any, Any] = {}  # by call, of its timeout or its next try

    def call(self, call: Any) -> None:
        """Pass on a call to be made."""
        if is_async_function(call.function):
            self._loop_caller().ask(call)  # a system is not idle before the answer
            return
        box = call.box
        place = box.place_of(call)
        idle = self._idle.setdefault((box, place), [])
        caller = idle.pop() if idle else self._thread_caller(box, place)
        self._busy[call, call.tries] = (box, place), caller
        caller.tell(call)
        if box.options.timeout is not None:  # a LoopCaller has it itself
            self._timers[call] = self._of.after(box.options.timeout, CallTimeout(call, call.tries))

    def call_batch(self, worker: int, message: RowsToCall) -> None:
        """Have a worker call a box for a batch."""
        callers = self._batch_callers
        while len(callers) <= worker:
            callers.append(self._spawn(BatchCaller, placement=Numbered(len(callers))))
        callers[worker].tell(message)

    def retry_later(self, call: Any) -> None:
        """Repeat a call after the pause of its box."""
        pause = call.box.options.pause(call.tries)
        call.tries += 1
        self._timers[call] = self._of.after(pause, RetryCall(call))

    def cancel_timer(self, call: Any) -> None:
        """Cancel the timer of a call, if it has one."""
        timer = self._timers.pop(call, None)
        if timer is not None:
            timer.cancel()

    def cancel_timers(self) -> None:
        """Cancel all timers."""
        for call in (*self._timers,):
            self.cancel_timer(call)

    def is_free(self, call: Any, attempt: int) -> None:
        """Use a call's caller for others: the call is over."""
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
        # The run makes dead letters of the records of calls that are not handled.
        self._of.system.dead_letters.expect_wake_ups(caller)
        return caller


class Numbered(PlacementPolicy):
    """Places an actor on the worker of a number, modulo the number of workers."""

    def __init__(self, number: int) -> None:
        self._number = number

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker."""
        return workers[self._number % len(workers)]
