"""Supervision: the decision what happens when an actor fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.core.text import safe_repr

Directive = Literal["stop", "restart", "resume", "escalate"]
Scope = Literal["one", "all", "rest"]

DIRECTIVES = ("stop", "restart", "resume", "escalate")
SCOPES = ("one", "all", "rest")


@dataclass(frozen=True, slots=True)
class Supervision:
    """The policy for one actor's failures, given at its spawn.

    In each case the current message becomes a dead letter, and an ask gets the exception.

    Args:
        directive: One of these, or a function from the exception to one:

            - `stop`: stop the actor. The default, since its state may be wrong.
            - `restart`: make a new object from the arguments of the spawn. The mailbox keeps its
              messages; the children are stopped first.
            - `resume`: continue with the next message and the same object.
            - `escalate`: stop, and let the parent fail with the same exception. From a top-level
              actor this stops the system, and leaving its `with` block raises the exception.
        scope: The actors that `stop` and `restart` apply to: `one` (this actor), `all` (also its
            siblings), or `rest` (this one and the siblings spawned after it).
        limit: After this many restarts within `window` seconds the actor stops.
        window: See `limit`.
        backoff: The wait before the first restart in seconds. It doubles with each further one
            within the window.
        max_backoff: The longest wait.
        expected: Exception classes with which the actor refuses a message, and which are not
            failures. If `receive` raises one, an ask gets it, and the actor continues, without a
            dead letter, a traceback in the log, or a call of `on_failure`. For a told message, the
            log has one line at the level DEBUG.
    """

    __dir__ = public_names

    directive: Directive | Callable[[BaseException], Directive] = "stop"
    scope: Scope = "one"
    limit: int | None = 10
    window: float = 60.0
    backoff: float = 0.0
    max_backoff: float = 30.0
    expected: type[Exception] | tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.directive):
            checks.one_of("a directive", self.directive, DIRECTIVES, error=ConfigError)
        checks.one_of("a scope", self.scope, SCOPES, error=ConfigError)
        if self.limit is not None:
            checks.whole("a limit of restarts", self.limit, 0, error=ConfigError)
        classes = self.expected if isinstance(self.expected, tuple) else (self.expected,)
        for one in classes:
            if not isinstance(one, type) or not issubclass(one, Exception):
                raise ConfigError(f"`expected` is for classes of exceptions, got {safe_repr(one)}")
        object.__setattr__(self, "expected", classes)
        for name in ("window", "backoff", "max_backoff"):
            checks.seconds(name, getattr(self, name), error=ConfigError)
        if self.backoff > self.max_backoff:
            raise ConfigError(
                f"expected a backoff of at most max_backoff, {self.max_backoff:g} s, got "
                f"{self.backoff:g} s: give a larger max_backoff=, the longest pause, with it"
            )

    def _decide(self, error: BaseException) -> Directive:
        """Return the directive for `error`."""
        directive = self.directive(error) if callable(self.directive) else self.directive
        if not isinstance(directive, str) or directive not in DIRECTIVES:
            raise ConfigError(f"a supervisor answered {safe_repr(directive)} to {safe_repr(error)}")
        return directive

    def _expects(self, error: BaseException) -> bool:
        """Tell whether `error` is one that the actor refuses a message by."""
        return isinstance(error, self.expected)

    def _delay(self, restarts: int) -> float:
        """Return how many seconds to wait before a restart that follows `restarts` others."""
        return min(self.backoff * 2.0 ** min(restarts, 64), self.max_backoff)

    @classmethod
    def _of(
        cls, value: Supervision | Directive | Callable[[BaseException], Directive]
    ) -> Supervision:
        """Make a policy of a directive alone; leave a policy as it is."""
        return value if isinstance(value, cls) else cls(value)  # type: ignore[arg-type]
