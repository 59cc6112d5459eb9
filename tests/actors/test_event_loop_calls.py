"""Calls on a system's event loop: one wake-up serves many, and none is missed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from callboard._inside.receiving.event_loop import EventLoop
from callboard.core.log import log
from tests.waiting import in_threads


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop("calls")
    yield loop
    loop.close(30)


def wakes_of(loop: EventLoop) -> list[Any]:
    """Return a list that grows with each wake of a loop that has begun."""
    begun = threading.Event()
    loop.call(begun.set)
    assert begun.wait(30)
    ours = loop._loop
    assert ours is not None
    wakes: list[Any] = []
    wake = ours.call_soon_threadsafe

    def noted(function: Any, *args: Any, **options: Any) -> asyncio.Handle:
        wakes.append(function)
        return wake(function, *args, **options)

    ours.call_soon_threadsafe = noted  # type: ignore[method-assign, assignment]
    return wakes


def test_calls_to_a_busy_loop_wake_it_once_and_keep_their_order(loop: EventLoop) -> None:
    wakes = wakes_of(loop)
    busy, free, done = threading.Event(), threading.Event(), threading.Event()
    made: list[int] = []

    def work() -> None:
        busy.set()
        assert free.wait(30)

    loop.call(work)
    assert busy.wait(30)
    for number in range(100):
        loop.call(lambda number=number: made.append(number))  # type: ignore[misc]
    loop.call(done.set)
    free.set()
    assert done.wait(30)
    assert made == [*range(100)]
    assert len(wakes) == 2


def test_no_call_is_missed_however_threads_and_the_loop_meet(loop: EventLoop) -> None:
    for _ in range(200):
        made: list[int] = []
        done = threading.Event()

        def call(made: list[int] = made, done: threading.Event = done) -> None:
            made.append(1)
            if len(made) == 60:
                done.set()

        def sender(call: Any = call) -> None:
            for _ in range(20):
                loop.call(call)

        in_threads(lambda _: sender(), range(3))
        assert done.wait(30), f"{len(made)} of 60 calls were made"


def test_a_call_behind_one_that_ends_the_loop_is_made(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(log, "error", lambda text, **_: logged.append(text))
    busy, free, done = threading.Event(), threading.Event(), threading.Event()

    def end() -> None:
        busy.set()
        assert free.wait(30)
        raise SystemExit(3)

    loop.call(end)
    assert busy.wait(30)
    loop.call(end)
    loop.call(done.set)
    free.set()
    assert done.wait(30)
    assert set(logged) == {"a callback would have ended the event loop"}


def test_a_call_of_a_closed_loop_is_an_error() -> None:
    loop = EventLoop("closed")
    loop.call(int)
    loop.close(30)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            loop.call(int)
