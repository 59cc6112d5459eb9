"""Actor systems in an event loop of the user's: what would wait waits in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from callboard._inside.answers.future import Future
from callboard._inside.sending.runtime import Runtime
from callboard.core import checks
from callboard.core.errors import CallboardError, DrainTimeout
from callboard.core.threads.blocking import running_trio
from callboard.scheduling.config import Config
from callboard.scheduling.team import obstacle_to_waiting
from callboard.signals import Signals
from callboard.stopping import (
    LAST_MOMENT,
    LAST_WORDS,
    STOP_TIMEOUT,
    drain,
    drained_and_left,
    log_left_behind,
)

R = TypeVar("R")


class InThread(Future[R]):
    """The outcome of a function that runs in a thread of its own.

    A cancelled `await` sets `is_given_up`, at which the function may look.
    """

    def __init__(self, name: str, function: Callable[[InThread[R]], R]) -> None:
        super().__init__()
        self.is_given_up = False
        self.thread = threading.Thread(target=self._run, args=(function,), name=name, daemon=True)
        self.thread.start()

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


DONE: Future[None] = Future()
DONE.set_result(None)


class Hosted:
    """The part of ActorSystem that is for coroutines."""

    config: Config
    _runtime: Runtime
    _signals: Signals
    _leave_by: float | None
    _left: tuple[BaseException, float] | None = None

    @contextmanager
    def _leaving(self, error: BaseException | None) -> Iterator[float]:
        """Leave an inner `with` block by an error, and yield the seconds that its end may take.

        They are a part of those of the system's own block, if the same error leaves that, too.
        """
        before = self._time_taken(error)
        began = time.monotonic()
        try:
            yield max(STOP_TIMEOUT - before, LAST_WORDS)
        finally:
            taken = before + time.monotonic() - began
            if error is not None and taken > LAST_MOMENT:  # else it is not kept, nor its frames
                self._left = error, taken

    def _time_taken(self, error: BaseException | None) -> float:
        """Return how many seconds the ends of inner blocks have taken, which the error left."""
        left, self._left = self._left, None
        return left[1] if left is not None and left[0] is error else 0.0

    @property
    def is_run_here(self) -> bool:
        """True in the one thread that may run the system, step by step: see `ManualSystem`."""
        return False

    def drain(self, timeout: float | None = None) -> None:
        """Wait until the system is idle."""
        raise NotImplementedError

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop all actors, and the workers."""
        raise NotImplementedError

    def _stop(self, seconds: float) -> None:
        """Stop, whatever thread that holds up."""
        raise NotImplementedError

    @property
    def _only_asks_for_stop(self) -> bool:
        """True where a stop does not wait for another thread: in an actor, or in its own thread."""
        return self.is_run_here or obstacle_to_waiting(self._runtime.team) is not None

    def adrain(self, timeout: float | None = None) -> Future[None]:
        """Like drain(), but return a future at once, to be awaited in an event loop.

        Raises CallboardError in an actor, as drain() does.
        """
        self._runtime.refuse_fork()
        seconds = self._time_of_drain(timeout)
        self._refuse_worker("adrain()")
        runtime = self._runtime
        if not self.is_run_here:
            wait = lambda future: drain(runtime, seconds, lambda: future.is_given_up)  # noqa: E731
            return InThread(f"{runtime.name}-drain", wait)
        drained: Future[None] = Future()
        try:
            self.drain(seconds)
            drained.set_result(None)
        except DrainTimeout as error:
            drained.set_exception(error)
        return drained

    def astop(self, timeout: float = STOP_TIMEOUT) -> Future[None]:
        """Like stop(), but return a future at once, to be awaited in an event loop.

        The stop goes on after a cancelled `await`. The future fails with DrainTimeout where stop()
        raises it.
        """
        seconds = checks.seconds("the timeout of stop()", timeout)
        if self._runtime.forked or self._runtime.closed or self._only_asks_for_stop:
            self.stop(seconds)
            return DONE
        self._signals.restore()  # while this is the main thread, which alone can do so
        return InThread(f"{self._runtime.name}-stop", lambda _: self._stop(seconds))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await leave(self, error)
        self._signals.restore()  # which gives handlers back in the main thread only

    def _time_of_drain(self, timeout: float | None) -> float:
        if timeout is None:
            return self.config.drain_timeout
        return checks.seconds("the timeout of drain()", timeout)

    def _refuse_worker(self, what: str) -> None:
        obstacle = obstacle_to_waiting(self._runtime.team)
        if obstacle is not None:
            raise CallboardError(f"{what} {obstacle}")


async def leave(system: Hosted, error: BaseException | None) -> None:
    """Drain, unless the block ended by `error`, then stop. A cancelled drain stops at once.

    After one signal, it drains whatever the error is: `asyncio.run()` cancels the task then.
    """
    runtime = system._runtime
    if runtime.forked:
        return
    seconds = system.config.drain_timeout
    taken = system._time_taken(error)
    deadline = system._leave_by = time.monotonic() + seconds - taken
    drained: Future[None] = DONE
    late: DrainTimeout | None = None
    try:
        if error is None or system._signals.count == 1:
            drained = system.adrain(seconds)
            await drained
    except DrainTimeout as timeout:
        late = timeout
    except BaseException as raised:
        error = raised
        raise
    finally:
        if not isinstance(error, GeneratorExit):
            await until_done(drained)  # at once, where it was given up
        left = max(min(deadline - time.monotonic(), STOP_TIMEOUT - taken), LAST_WORDS)
        try:
            await _stop(system, left, error)
        except DrainTimeout as behind:
            if error is not None:
                log_left_behind(runtime.name, behind)
            elif late is None:
                raise
            else:
                late = drained_and_left(runtime.name, seconds, behind)
    if late is not None:
        raise late
    if error is None and runtime.failure is not None:
        raise runtime.failure


async def _stop(system: Hosted, timeout: float, error: BaseException | None) -> None:
    """Stop, whatever cancels the wait for it. `error` ends the block, if there is one."""
    runtime = system._runtime
    if system._only_asks_for_stop or isinstance(error, GeneratorExit):
        system._stop(timeout)
        return
    stopped = InThread(f"{runtime.name}-stop", lambda _: system._stop(timeout))
    cancellation = await until_done(stopped)
    if cancellation is None:
        stopped.result()
        return
    late = stopped.exception()
    if isinstance(late, DrainTimeout):
        log_left_behind(runtime.name, late)
    raise cancellation


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
