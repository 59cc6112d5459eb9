"""The actors that call boxes elsewhere: some for the event loop, others for threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from callboard._inside.sending.ref import ActorRef
from callboard.nets.kernel.building import is_async_function
from callboard.nets.running.callers import LoopCaller, ThreadCaller
from callboard.scheduling.handle import Handle
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.worker import WorkerThread

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
        self._of.system.dead_letters.expect_wake_ups(caller)  # the run buries the calls' records
        return caller


class Numbered(PlacementPolicy):
    """The worker of a number, counted round if there are fewer."""

    def __init__(self, number: int) -> None:
        self._number = number

    def place(self, actor: Handle, workers: Sequence[WorkerThread]) -> WorkerThread:
        """Return the worker."""
        return workers[self._number % len(workers)]
