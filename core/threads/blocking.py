"""Calls that would block the caller's event loop are refused, allowed, or made in a thread."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from callboard.core.errors import WouldBlock

T = TypeVar("T")

_allowed: ContextVar[bool] = ContextVar("callboard_blocking", default=False)


@contextmanager
def blocking() -> Iterator[None]:
    """Allow the calls in this `with` statement to block their event loop.

    This applies only to the calling task or thread. Without it such a call raises WouldBlock.
    """
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def refuse_to_block(what: str, instead: str) -> None:
    """Raise WouldBlock if the caller, which is about to wait, is a coroutine of asyncio or trio.

    The error says what to do `instead`. A notebook's cell may wait: nothing else uses its loop.
    """
    if runs_event_loop() and not _allowed.get() and not _is_notebook():
        raise WouldBlock(f"{what} would block the event loop: {instead}")


def runs_event_loop() -> bool:
    """Tell whether the calling thread runs an event loop, of asyncio or trio."""
    return asyncio._get_running_loop() is not None or running_trio() is not None


def running_trio() -> Any | None:
    """Return the module trio if the caller is in one of its tasks. This does not import trio."""
    if "trio" not in sys.modules:
        return None
    trio = sys.modules["trio"]  # get() locks the table twice on CPython 3.13t, and spins
    if not trio.lowlevel.in_trio_task():
        return None
    # A task of asyncio may run in one of trio.
    return trio if asyncio._get_running_loop() is None or asyncio.current_task() is None else None


def running_task() -> Any | None:
    """Return the caller's task, of asyncio or trio."""
    trio = running_trio()
    return asyncio.current_task() if trio is None else trio.lowlevel.current_task()


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """Make a call in a thread of the event loop. If the `await` is cancelled, the call goes on."""
    trio = running_trio()
    if trio is None:
        return await asyncio.to_thread(call, *arguments)
    result: T = await trio.to_thread.run_sync(call, *arguments, abandon_on_cancel=True)
    return result


def _is_notebook() -> bool:
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and bool(kernel.IPKernelApp.initialized())
