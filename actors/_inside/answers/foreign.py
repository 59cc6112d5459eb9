"""Conversions between callboard's futures and those of asyncio and concurrent.futures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
from functools import partial
from typing import Any, TypeVar

from callboard._inside.answers.future import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core.errors import CallboardError
from callboard.core.text import safe_repr

R = TypeVar("R")


class FollowedFuture(Future[R]):
    """A future of what another library's future brings. To cancel it cancels that one, too."""

    __slots__ = ("_followed",)

    _followed: asyncio.Future[R] | concurrent.futures.Future[R] | None

    def cancel(self) -> bool:
        """Cancel what is followed, too. False if it was complete already."""
        other, self._followed = self._followed, None
        if not super().cancel():
            return False
        if isinstance(other, concurrent.futures.Future):
            other.cancel()
        elif other is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                other.get_loop().call_soon_threadsafe(other.cancel)
        return True

    @property
    def _ends_unwanted(self) -> bool:
        return True

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)


def future_of(value: Any) -> Future[Any] | None:
    """Return a future that is done when `value`, another library's future, is; else None."""
    if isinstance(value, concurrent.futures.Future):
        future: FollowedFuture[Any] = FollowedFuture()
        future._followed = value
        value.add_done_callback(partial(_copy, future))
        return future
    if asyncio.isfuture(value):
        future = FollowedFuture()
        future._followed = value
        follow = partial(value.add_done_callback, partial(_copy, future))
        try:
            value.get_loop().call_soon_threadsafe(follow)
        except RuntimeError as error:  # the loop was closed
            future.set_exception(error)
        return future
    return None


def future_of_awaitable(value: Any) -> Future[Any] | None:
    """Return a future of what awaiting `value` brings, as a task; None if it cannot be awaited.

    Raises CallboardError where no event loop of asyncio runs.
    """
    if isinstance(value, Future):
        return value
    future = future_of(value)
    if future is not None or not inspect.isawaitable(value):
        return future
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise CallboardError(
            f"{safe_repr(value)} cannot be awaited here: no asyncio event loop is running"
        ) from None
    return future_of(asyncio.ensure_future(value))


def _copy(future: FollowedFuture[Any], other: Any) -> None:
    future._followed = None
    try:
        future.set_result(other.result())
    except BaseException as error:
        future.set_exception(error)


def as_concurrent(future: Future[R]) -> concurrent.futures.Future[R]:
    """Return a `concurrent.futures.Future` that is done when `future` is.

    Cancelling it cancels `future`. Pass it to `concurrent.futures.wait`, to `as_completed`, or to
    `asyncio.wrap_future`.
    """
    made: concurrent.futures.Future[R] = concurrent.futures.Future()

    def cancel(made: concurrent.futures.Future[R]) -> None:
        if made.cancelled():
            future.cancel()

    def copy(future: Future[R]) -> None:
        if future.cancelled():
            made.cancel()
        if not made.set_running_or_notify_cancel():
            return
        error = future.exception()
        if error is None:
            made.set_result(future.result())
        else:
            made.set_exception(error)

    made.add_done_callback(cancel)
    future.add_done_callback(copy)
    return made
