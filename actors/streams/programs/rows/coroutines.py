"""Coroutines whose results are outputs, many at a time on an event loop; pauses between retries."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from callboard._inside.answers.future import Future
from callboard._inside.receiving.event_loop import EventLoop
from callboard.core.text import safe_repr

LONGEST = 3600.0  # seconds


class Pauses:
    """The pauses between attempts: `backoff` seconds, then twice as long each time, an hour at
    most. Each pause is shorter by a random part, of `jitter` at most, so that rows which failed
    together are not retried together.
    """

    def __init__(self, backoff: float, jitter: float) -> None:
        self._backoff = backoff
        self._jitter = jitter
        self._chance = random.Random()

    def seed(self, seed: int | None) -> None:
        """Give the same pauses each time, for a seed."""
        self._chance = random.Random(seed)

    def after(self, tries: int) -> float:
        """Return the seconds to wait after this number of tries."""
        longest = min(self._backoff * 2.0 ** (tries - 1), LONGEST)
        return longest * (1 - self._jitter * self._chance.random())


Call = tuple[Any, Future[Any]]
_LEAVE = 5.0  # seconds that the tasks which are left may take to be gone


class Coroutines:
    """Calls a function of a row that returns a coroutine, and completes a future with its
    outcome. If it raises or takes more than `timeout` seconds, it is called again, after `pauses`,
    at most `retries` times.

    Until a run names its system's event loop it uses a private one.
    """

    event_loop: EventLoop | None = None

    def __init__(
        self,
        function: Callable[[Any], Awaitable[Any]],
        timeout: float | None,
        retries: int,
        backoff: float,
        jitter: float,
    ) -> None:
        self._function = function
        self._timeout = timeout
        self._retries = retries
        self.pauses = Pauses(backoff, jitter)
        self._tasks: set[asyncio.Task[None]] = set()  # on the loop's thread
        self._own: EventLoop | None = None
        self._has_begun = False

    def begin(self, calls: list[Call]) -> None:
        """Call the function with these rows, on the loop. Raises what EventLoop.call() does."""
        if self.event_loop is None:
            self.event_loop = self._own = EventLoop("callboard-stream")
        self._has_begun = True
        self.event_loop.call(partial(self._begin, calls))

    def close(self) -> None:
        """Cancel the tasks that are left."""
        if self._own is not None:
            self._own.close(_LEAVE)
        elif self._has_begun and self.event_loop is not None:
            with suppress(Exception):  # its system was stopped
                self.event_loop.call(self._cancel)

    # --- on the loop's thread ---------------------------------------------------------------------

    def _begin(self, calls: list[Call]) -> None:
        loop = asyncio.get_running_loop()
        for row, future in calls:
            task = loop.create_task(self._answer(row, future))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def _answer(self, row: Any, future: Future[Any]) -> None:
        try:
            answer = await self._tried(row)
        except (StopAsyncIteration, GeneratorExit) as error:  # which no future can have
            failed = RuntimeError(f"the coroutine raised {error!r}")
            failed.__cause__ = error
            future.set_exception(failed)
        except BaseException as error:
            future.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            future.set_result(answer)

    async def _tried(self, row: Any) -> Any:
        tries = 0
        while True:
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._called(row)
                    while inspect.iscoroutine(answer):
                        answer = await answer
                    return answer
            except Exception:
                if tries == self._retries:
                    raise
            tries += 1
            await asyncio.sleep(self.pauses.after(tries))

    def _called(self, row: Any) -> Awaitable[Any]:
        answer = self._function(row)
        if not inspect.isawaitable(answer):
            raise TypeError(
                f"map(in_flight=) expected the function to return an awaitable, got "
                f"{safe_repr(answer)}"
            )
        return answer
