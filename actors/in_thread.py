"""Functions that run in new threads, and the futures of their results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

from callboard._inside.answers.future import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core.threads.blocking import running_trio

R = TypeVar("R")


class InThread(Future[R]):
    """The outcome of a function that runs in a new thread.

    A cancelled `await` sets `is_given_up`, at which the function may look.
    """

    def __init__(self, name: str, function: Callable[[InThread[R]], R]) -> None:
        super().__init__()
        self.is_given_up = False
        self.thread = threading.Thread(target=self._run, args=(function,), name=name, daemon=True)
        self.thread.start()

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)

    def _run(self, function: Callable[[InThread[R]], R]) -> None:
        try:
            self.set_result(function(self))
        except BaseException as error:
            self.set_exception(error)

    def cancel(self) -> bool:
        """Give up, as a cancelled `await` does. False if it was complete already."""
        self.is_given_up = True
        return super().cancel()

    def __await__(self) -> Generator[Any, None, R]:
        try:
            return (yield from super().__await__())
        except BaseException:
            self.is_given_up = True
            raise


class Sending(InThread[R]):
    """The outcome of a function that sends, and raises AskCancelled soon after it is given up.

    A cancelled `await` waits for that, so that what is sent later does not come before; one that is
    cancelled twice does not. Its exception has `sent` and `unsent` as the function's has.
    """

    def cancel(self) -> bool:
        """Have the function give up: then it is complete. False if it was complete already."""
        self.is_given_up = True
        return not self.done()

    def __await__(self) -> Generator[Any, None, R]:
        try:
            return (yield from super().__await__())
        except GeneratorExit:
            raise
        except BaseException as error:
            yield from self._wait_to_the_end()
            outcome = self.exception() if self.done() else None
            for name in ("sent", "unsent"):
                with suppress(Exception):
                    setattr(error, name, getattr(outcome, name))
            raise

    def _wait_to_the_end(self) -> Generator[Any, None, None]:
        with _shield():
            try:
                yield from super().__await__()
            except GeneratorExit:
                raise
            except BaseException:  # what it ends with, or a second cancellation
                return


async def until_done(future: Future[Any]) -> BaseException | None:
    """Wait for a future's end, and return what would have cancelled the wait."""
    cancellation: BaseException | None = None
    with _shield():
        while not future.done():
            try:
                await future
            except GeneratorExit:
                raise
            except BaseException as raised:
                cancellation = cancellation if future.done() else raised
    if isinstance(future, InThread):
        future.thread.join()  # it has said what came of it
    return cancellation


def _shield() -> Any:
    """Keep trio from cancelling a task again at each step."""
    trio = running_trio()
    return nullcontext() if trio is None else trio.CancelScope(shield=True)
