"""Retries of asks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.asks.delayed import DelayedAsk
from callboard.asks.policy import AskPolicy, kinds_of
from callboard.core import checks
from callboard.core.errors import ActorStopped, AskTimeout, MailboxFull

if TYPE_CHECKING:
    from callboard.system import ActorSystem


class Retry(AskPolicy):
    """Repeats an ask that fails, with increasing waits in between."""

    def __init__(
        self,
        attempts: int = 3,
        *,
        backoff: float = 0.1,
        factor: float = 2.0,
        longest: float = 30.0,
        jitter: float = 0.5,
        on: type[BaseException] | tuple[type[BaseException], ...] = (
            AskTimeout,
            ActorStopped,
            MailboxFull,
        ),
        system: ActorSystem | None = None,
    ) -> None:
        """Make a policy that repeats failed asks.

        Args:
            attempts: The most attempts, including the first.
            backoff: The first wait in seconds.
            factor: Each later wait is this many times as long.
            longest: The longest wait in seconds.
            jitter: The largest share of a wait, from 0 to 1, that is left out at random, so that
                callers do not retry all at once.
            on: The errors after which to ask again. A cancelled ask is not repeated.
            system: The system whose timers are used; by default that of the asked actor.

        Raises ValueError, TypeError.
        """
        super().__init__(system)
        self.attempts = checks.whole("attempts", attempts)
        self.backoff = checks.seconds("backoff", backoff)
        self.factor = checks.finite("factor", factor)
        self.longest = checks.seconds("longest", longest)
        self.jitter = checks.finite("jitter", jitter)
        if self.factor < 1:
            raise ValueError(f"factor must be at least 1, got {factor!r}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be from 0 to 1, got {jitter!r}")
        self.on = kinds_of("on", on)

    def call(self, ask: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of `ask(*args, **kwargs)`, which is repeated after an error in `on`.

        The first call is made in this thread. The others are made on the timers' thread; their
        messages have no sender, and may exceed the capacity of a full mailbox. The future fails
        with the error of the last attempt, or with SystemClosed if the system stops in between.
        """
        asked = DelayedAsk(self._timers(ask, args, kwargs), ask, args, kwargs, self._note)
        asked.begin()
        return asked

    def _note(self, asked: DelayedAsk, future: Future[Any]) -> None:
        error = future.exception()
        if asked.done():
            return
        again = isinstance(error, self.on) and not future.cancelled()
        if again and asked.calls < self.attempts:
            asked.begin_in(self._wait_after(asked.calls))
        else:
            asked.follow(future)

    def _wait_after(self, calls: int) -> float:
        """Return how many seconds to wait after this many attempts, by chance within the jitter."""
        try:
            wait = min(self.backoff * self.factor ** (calls - 1), self.longest)
        except OverflowError:
            wait = self.longest
        return wait * (1 - self.jitter * random.random())

    def __repr__(self) -> str:
        return f"<Retry {self.attempts} attempts, backoff {self.backoff:g} s>"
