"""The base of the handles of runs: calls for event loops, and the ends of `with` blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic, Self, TypeVar

from callboard._inside.answers.future import Future
from callboard.core.errors import WouldBlock
from callboard.core.handles import CopiedAsItself
from callboard.core.threads.blocking import refuse_to_block
from callboard.in_thread import InThread, Sending, until_done
from callboard.system import ActorSystem

R = TypeVar("R", covariant=True)
V = TypeVar("V")

CANCEL = 5.0  # seconds that a cancelled run may take


class RunHandle(CopiedAsItself, Generic[R]):
    """A running graph of any kind. A context manager: leaving it finishes the run."""

    _system: ActorSystem

    @abstractmethod
    def finish(self, timeout: float | None = None) -> R:
        """Finish the run, and return its result."""

    def afinish(self, timeout: float | None = None) -> Future[R]:
        """Like finish(), but return a future to await in an event loop."""
        return self._begin("finish", partial(self.finish, timeout))

    @abstractmethod
    def cancel(self, timeout: float = CANCEL) -> None:
        """Cancel the run."""

    @abstractmethod
    def _cancel(self, timeout: float) -> None:
        """Cancel the run, also where that holds up an event loop."""

    def acancel(self, timeout: float = CANCEL) -> Future[None]:
        """Like cancel(), but return a future to await in an event loop."""
        return self._begin("cancel", partial(self._cancel, timeout))

    @property
    def _works_here(self) -> bool:
        """Whether a thread that waits for the run does the work."""
        return self._system._is_run_here

    def _refuse_loop(self, call: str, instead: str) -> None:
        """Raise WouldBlock where a wait would block an event loop."""
        if not self._works_here:
            refuse_to_block(f"{call} of {self!r}", instead)

    def _begin(self, what: str, call: Callable[..., V], *, may_give_up: bool = False) -> Future[V]:
        """Call in another thread, unless the calling thread does the work."""
        name = f"{self._system.name}-{what}"
        if not self._works_here:
            if may_give_up:
                return Sending(name, lambda future: call(is_given_up=lambda: future.is_given_up))
            return InThread(name, lambda _: call())
        called: Future[V] = Future()
        try:
            called.set_result(call())
        except Exception as error:
            called.set_exception(error)
        return called

    def __enter__(self) -> Self:
        try:
            self._refuse_loop("the end of `with`", "use `async with`")
        except WouldBlock:
            with suppress(TimeoutError):
                self._cancel(0.0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if kind is None:
            self.finish()
        else:  # the block's error says more than a timeout
            with suppress(TimeoutError), self._system._shutdown.leaving(error) as left:
                self.cancel(min(CANCEL, left))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        is_finished = False
        try:
            if kind is None:
                await self.afinish()
                is_finished = True
        finally:
            if not is_finished:
                with self._system._shutdown.leaving(error) as left:
                    cancellation = await until_done(self.acancel(min(CANCEL, left)))
                if cancellation is not None:
                    raise cancellation
