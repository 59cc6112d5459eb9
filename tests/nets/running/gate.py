"""Helpers of tests of runs, and boxes that end when the test says so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import Queue
from typing import Any, TypeVar

from callboard.nets import NetRun, Record, box

T = TypeVar("T")

TIMEOUT = 60.0


class Gate:
    """Calls wait here, each until the test lets it go by its value."""

    def __init__(self) -> None:
        self.came: Queue[Any] = Queue()
        self.now = self.most = 0
        self._lock = threading.Lock()
        self._ends: dict[Any, Future[Any]] = {}

    def wait(self, value: Any) -> Any:
        """Wait, on a thread."""
        end = self._begin(value)
        try:
            return end.result(TIMEOUT)
        finally:
            self._end()

    async def wait_here(self, value: Any) -> Any:
        """Wait, on the event loop."""
        end = self._begin(value)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(end), TIMEOUT)
        finally:
            self._end()

    def next(self) -> Any:
        """Return the value of the next call that has come here."""
        return self.came.get(timeout=TIMEOUT)

    def several(self, number: int) -> set[Any]:
        """Wait until so many calls have come here, and return their values."""
        return {self.next() for _ in range(number)}

    def open(self, *values: Any, error: Exception | None = None) -> None:
        """Let calls go, one after the other."""
        for value in values:
            end = self._at(value)
            if not end.set_running_or_notify_cancel():
                continue
            if error is None:
                end.set_result(value)
            else:
                end.set_exception(error)

    def _at(self, value: Any) -> Future[Any]:
        with self._lock:
            return self._ends.setdefault(value, Future())

    def _begin(self, value: Any) -> Future[Any]:
        end = self._at(value)
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.came.put(value)
        return end

    def _end(self) -> None:
        with self._lock:
            self.now -= 1


def within(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Call a function on another thread; its future has what comes of it."""
    future: Future[T] = Future()

    def call() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future


def box_of(kind: str, *functions: Callable[[Any], Any], **options: Any) -> Any:
    """Return a box of a kind: a generator yields what each function returns, others the last."""
    function = functions[-1]

    async def once(x: Any) -> Any:
        return function(x)

    def generator(x: Any) -> Iterator[Any]:
        for each in functions:
            yield each(x)

    async def async_generator(x: Any) -> AsyncIterator[Any]:
        for each in functions:
            yield each(x)

    forms = {"async": once, "generator": generator, "async generator": async_generator}
    if kind in ("threads", "dedicated"):
        options[kind] = True
    return box(forms.get(kind, function), "(x) -> (y)", **options)


def send_all(run: NetRun, records: Any) -> list[Record]:
    """Send records, and return what comes of all."""
    run.send(records, timeout=TIMEOUT)
    return run.finish(TIMEOUT)


def rows(values: Iterable[Any], label: str = "x") -> list[dict[str, Any]]:
    """Return records with one label."""
    return [{label: value} for value in values]


def values_of(records: Iterable[Any], label: str) -> list[Any]:
    """Return the values of a label."""
    return [record[label] for record in records]
