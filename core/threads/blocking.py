"""Calls that would block an event loop of the caller's: they are refused, unless asked for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from callboard.core.errors import WouldBlock

_allowed: ContextVar[bool] = ContextVar("callboard_blocking", default=False)


@contextmanager
def blocking() -> Iterator[None]:
    """Let the calls in this `with` block hold up the event loop that they are made on.

    It holds for the calling task or thread. Without it, such a call raises WouldBlock.
    """
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def refuse_to_block(what: str, instead: str) -> None:
    """Raise WouldBlock in a coroutine of asyncio or trio. The caller is about to wait.

    The error says what to do `instead`. A notebook's cell may wait: nobody else uses its loop.
    """
    if runs_event_loop() and not _allowed.get() and not _is_notebook():
        raise WouldBlock(f"{what} would block the event loop: {instead}")


def runs_event_loop() -> bool:
    """Tell whether the calling thread runs an event loop, of asyncio or trio."""
    return asyncio._get_running_loop() is not None or running_trio() is not None


def running_trio() -> Any | None:
    """Return the module trio if a task of it runs on the calling thread. It is not imported for
    this.
    """
    if "trio" not in sys.modules:
        return None
    trio = sys.modules["trio"]  # get() locks the table twice on CPython 3.13t, and spins
    return trio if trio.lowlevel.in_trio_task() else None


def _is_notebook() -> bool:
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and bool(kernel.IPKernelApp.initialized())
