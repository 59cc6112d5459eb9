"""The event loop of a system: asyncio for the actors that were spawned with `event_loop=True`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

from callboard._inside.receiving.loop_task import begin_event_loop, with_actor
from callboard.core.log import log
from callboard.core.threads.green import refuse_green_sockets


class EventLoop:
    """An asyncio event loop and its thread, both made at the first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended: asyncio.Event | None = None
        self._calls: list[asyncio.Handle] = []
        self._is_woken = False  # the loop is about to look at the calls
        self._no_variables = Context()  # asyncio would copy the caller's, while others change them

    @property
    def thread(self) -> threading.Thread | None:
        """The thread; None before the first use."""
        return self._thread

    def call(self, function: Callable[[], object], context: Context | None = None) -> None:
        """Call `function()` on the loop's thread. In any thread.

        Raises OSError or RuntimeError if the process can have no more of what the loop needs, and
        CallboardError where gevent or eventlet has replaced that.
        """
        loop = self._loop
        if loop is None:
            loop = self._started()
        call = asyncio.Handle(function, (), loop, context)
        try:
            with self._lock:
                self._calls.append(call)
                if self._is_woken and not loop.is_closed():
                    return
                self._is_woken = True
            # Only the first of many calls wakes the loop, which is a system call.
            loop.call_soon_threadsafe(self._make_calls, context=self._no_variables)
        except BaseException:
            with self._lock:
                self._is_woken = False
                if call in self._calls:  # the loop may have it, if an interrupt came late
                    self._calls.remove(call)
            raise

    def _make_calls(self) -> None:
        """Make the calls that wait. One that comes later wakes the loop again."""
        with self._lock:
            calls, self._calls = self._calls, []
            self._is_woken = False
        calls.reverse()
        try:
            while calls:
                calls.pop()._run()
        finally:
            if calls:  # one of them has ended the loop, which starts again
                calls.reverse()
                with self._lock:
                    self._calls[:0] = calls
                    wakes, self._is_woken = not self._is_woken, True
                if wakes and self._loop is not None:
                    self._loop.call_soon(self._make_calls, context=self._no_variables)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._start()
        assert self._loop is not None
        return self._loop

    def _start(self) -> None:
        refuse_green_sockets("an actor with event_loop=True")
        # The loop is made here, not in its thread, so that the caller gets its error.
        loop, ended = asyncio.new_event_loop(), asyncio.Event()
        loop.set_task_factory(make_task)
        thread = threading.Thread(
            target=_run, args=(loop, ended), name=f"{self._name}-loop", daemon=True
        )
        try:
            thread.start()
        except BaseException:
            loop.close()
            raise
        self._loop, self._ended, self._thread = loop, ended, thread

    def begin_end(self) -> None:
        """Have the thread cancel the tasks that are left, and end. In any thread."""
        if self._loop is not None and self._ended is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._ended.set)

    def close(self, timeout: float) -> None:
        """Cancel the tasks that are left, and end the thread; `timeout` is in seconds."""
        self.begin_end()
        if self._thread is None:
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            log.warning(
                "the event loop still runs: a task or a thread does not end", system=self._name
            )


def _run(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    begin_event_loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        while not ended.is_set():
            try:
                runner.run(_wait(ended))
            except BaseException as error:  # of a callback: asyncio lets sys.exit() end its loop
                log.error("a callback would have ended the event loop", exc_info=error)


async def _wait(ended: asyncio.Event) -> None:
    await ended.wait()


def make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """Make a task that speaks for the actor whose task makes it."""
    return asyncio.Task(with_actor(coroutine), loop=loop, **options)
