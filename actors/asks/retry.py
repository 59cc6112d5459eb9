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
    """Ask again if an ask fails, with longer and longer waits in between."""

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
        """Ask `attempts` times at most.

        The first wait is `backoff` seconds, and each later one `factor` times as long, up to
        `longest`. A random part of it is left out, up to the share `jitter` from 0 to 1, so that
        many callers do not ask at one time. `on` are the errors after which it asks again; a
        cancelled ask is not asked again. `system` has the timers: see AskPolicy.

        Raises ValueError, TypeError.
        """
        super().__init__(system)
        self.attempts = checks.whole("attempts", attempts)
        self.backoff = checks.seconds("backoff", backoff)
        self.factor = checks.finite("factor", factor)
        self.longest = checks.seconds("longest", longest)
        self.jitter = checks.finite("jitter", jitter)
        if self.factor < 1:
            raise ValueError(f"factor is 1 or more, not {factor!r}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter is from 0 to 1, not {jitter!r}")
        self.on = kinds_of("on", on)

    def call(self, ask: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of `ask(*args, **kwargs)`, which is called again after an error in `on`.

        The first call is in this thread. The others are on the timers' thread, as messages of no
        sender; their messages may exceed the capacity of a full mailbox. The future fails as the
        last attempt does, and with SystemClosed if the system stops in between.
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
            asked.begin_in(self.wait_after(asked.calls))
        else:
            asked.follow(future)

    def wait_after(self, calls: int) -> float:
        """Return how many seconds to wait after so many attempts, by chance within the jitter."""
        try:
            wait = min(self.backoff * self.factor ** (calls - 1), self.longest)
        except OverflowError:
            wait = self.longest
        return wait * (1 - self.jitter * random.random())

    def __repr__(self) -> str:
        return f"<Retry {self.attempts} attempts, backoff {self.backoff:g} s>"
