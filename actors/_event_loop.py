"""The event loop of a system: asyncio for the actors that were spawned with `event_loop=True`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

from callboard._errand import with_actor
from callboard.core.log import log


class EventLoop:
    """An asyncio event loop with a thread of its own, both made at the first use."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended: asyncio.Event | None = None

    def call(self, function: Callable[[], object], context: Context | None = None) -> None:
        """Call `function()` on the loop's thread. In any thread."""
        with self._lock:
            if self._thread is None:
                started = threading.Event()
                thread = threading.Thread(
                    target=self._run, args=(started,), name=f"{self._name}-loop", daemon=True
                )
                thread.start()
                started.wait()
                self._thread = thread
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function, context=context)

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
            log.warning("the event loop is left behind: a task or a thread does not end",
                        system=self._name)

    def _run(self, started: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._loop.set_task_factory(_make_task)
            self._ended = asyncio.Event()
            self._loop.call_soon(started.set)
            runner.run(self._wait(self._ended))

    async def _wait(self, ended: asyncio.Event) -> None:
        await ended.wait()


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
) -> asyncio.Task[Any]:
    return asyncio.Task(with_actor(coroutine), loop=loop, **options)
