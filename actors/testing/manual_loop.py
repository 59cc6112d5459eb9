"""The event loop of a manual system: asyncio on the thread that runs the system, by its clock."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeVarTuple

from callboard._inside.receiving.event_loop import EventLoop, make_task
from callboard._inside.receiving.loop_task import as_event_loop
from callboard.core.errors import CallboardError
from callboard.scheduling.replay import ManualWorker
from callboard.timers import Timer, Timers

Ts = TypeVarTuple("Ts")


class ManualEventLoop(EventLoop):
    """Does for a manual system what EventLoop does for others, one callback at each `step()`."""

    def __init__(self, timers: Timers, worker: ManualWorker) -> None:
        super().__init__(worker.name)
        self._ours = _Loop(timers)
        self._ours.set_task_factory(make_task)
        self._worker = worker
        self._is_at_work = False

    def call(self, function: Callable[[], object], context: Context | None = None) -> None:
        """Call `function()` in one of the steps. In any thread."""
        self._ours.call_soon_threadsafe(function, context=context)

    @property
    def is_ready(self) -> bool:
        """Tell whether a callback waits that the calling thread may call.

        Raises CallboardError in a callback.
        """
        if self._is_at_work and self._worker.is_here:
            raise CallboardError(
                "a coroutine on the event loop of a manual system cannot run the system: it awaits "
                "answers, and does not wait for their result()"
            )
        return bool(self._ours.ready) and self._worker.is_here

    def step(self) -> bool:
        """Call the first callback that waits. False if none does."""
        while self.is_ready:
            handle = self._ours.ready.popleft()
            if not handle.cancelled():
                self._run(handle)
                return True
        return False

    def _run(self, handle: asyncio.Handle) -> None:
        around = asyncio._get_running_loop()  # of a test that is a coroutine itself
        asyncio._set_running_loop(self._ours)
        self._is_at_work = True
        try:
            as_event_loop(handle._run)
        finally:
            self._is_at_work = False
            asyncio._set_running_loop(around)

    def begin_end(self) -> None:
        """Have the tasks that are left cancelled."""
        for task in asyncio.all_tasks(self._ours):
            task.cancel()

    def close(self, timeout: float) -> None:
        """Cancel the tasks that are left, and let them end, on the thread that runs the system."""
        deadline = time.monotonic() + timeout
        self.begin_end()
        while time.monotonic() < deadline and self.step():
            pass
        self._ours.close()


class _Loop(asyncio.BaseEventLoop):
    """Has callbacks wait for the system's steps, and those of a later time for its clock."""

    def __init__(self, timers: Timers) -> None:
        super().__init__()
        self.ready: deque[asyncio.Handle] = deque()
        self._timers = timers

    def time(self) -> float:
        return self._timers.now()

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = _TimerHandle(when, callback, args, self, context)
        delay = max(0.0, when - self.time())
        handle.timer = self._timers.call_after(delay, lambda: self.ready.append(handle))
        return handle

    def run_in_executor(self, *_: Any) -> Any:  # type: ignore[override]
        raise CallboardError(
            "a manual system has no threads that a coroutine could wait for: give it what the "
            "thread would bring, or test it in an ActorSystem"
        )

    def __del__(self, *_: Any) -> None:
        """Nothing outside of memory is left open."""


class _TimerHandle(asyncio.TimerHandle):
    __slots__ = ("timer",)

    timer: Timer

    def cancel(self) -> None:
        super().cancel()
        self.timer.cancel()
