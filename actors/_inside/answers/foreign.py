"""Futures of asyncio and of concurrent.futures: ours of theirs, and theirs of ours."""

from __future__ import annotations

import asyncio
import concurrent.futures
from functools import partial
from typing import Any, TypeVar

from callboard._inside.answers.future import Future

R = TypeVar("R")


def future_of(value: Any) -> Future[Any] | None:
    """Return a future that is done when `value`, one of theirs, is; None for anything else."""
    if isinstance(value, concurrent.futures.Future):
        future: Future[Any] = Future()
        value.add_done_callback(partial(_copy, future))
        return future
    if asyncio.isfuture(value):
        future = Future()
        follow = partial(value.add_done_callback, partial(_copy, future))
        try:
            value.get_loop().call_soon_threadsafe(follow)
        except RuntimeError as error:  # the loop was closed
            future.set_exception(error)
        return future
    return None


def _copy(future: Future[Any], other: Any) -> None:
    try:
        future.set_result(other.result())
    except BaseException as error:
        future.set_exception(error)


def as_concurrent(future: Future[R]) -> concurrent.futures.Future[R]:
    """Return a `concurrent.futures.Future` that is done when `future` is.

    `concurrent.futures.wait` and `as_completed`, and `asyncio.wrap_future`, take it.
    """
    made: concurrent.futures.Future[R] = concurrent.futures.Future()
    made.set_running_or_notify_cancel()  # to cancel it would cancel nothing

    def copy(future: Future[R]) -> None:
        error = future.exception()
        if error is None:
            made.set_result(future.result())
        else:
            made.set_exception(error)

    future.add_done_callback(copy)
    return made
