"""A thread that runs an event loop for sockets."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from callboard.core.threads.green import refuse_green_sockets, refuse_green_threads

T = TypeVar("T")


class IOThread:
    """An event loop, and the daemon thread that runs it."""

    def __init__(self, name: str) -> None:
        """Start.

        Raises OSError or RuntimeError if there are no threads or files left, and CallboardError
        where gevent or eventlet has replaced threads.
        """
        refuse_green_threads("a connection or a server")
        refuse_green_sockets("a connection or a server")
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self.loop.close()
            raise

    def _run(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def call(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """Call a function on the thread from another, and return its result."""

        async def calling() -> T:
            return function()

        return self.run(calling()).result(timeout)

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function on the thread: now if this is it, else soon; nothing after its end."""
        if self._thread is threading.current_thread():
            function()
        else:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(function)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the thread; return a future of its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def stop(self, timeout: float) -> None:
        """Cancel all tasks, and end the thread; `timeout` is in seconds."""

        async def cancelling() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.loop.call_soon(self.loop.stop)

        with suppress(RuntimeError):  # it is closed already
            asyncio.run_coroutine_threadsafe(cancelling(), self.loop)
        self.join(timeout)

    def join(self, timeout: float) -> None:
        """Wait until the thread has ended, unless this is the thread; `timeout` is in seconds."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
