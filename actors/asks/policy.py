"""The base class of policies: how they ask, and whose timers they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.recipient import is_recipient
from callboard.timers import Timers

if TYPE_CHECKING:
    from callboard.system import ActorSystem


class AskPolicy:
    """A rule for asks. Thread-safe; the calling thread never waits.

    Waits are timers of `system`, or, without it, of the asked actor's system.
    """

    def __init__(self, system: ActorSystem | None = None) -> None:
        if system is not None and timers_in(system) is None:
            raise TypeError(f"expected an ActorSystem as system, got {safe_repr(system)}")
        self._own_timers = None if system is None else timers_in(system)

    def call(self, ask: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of `ask(*args, **kwargs)`, by the policy's rule.

        `ask` is the method of a ref, or the `call` of another policy, whose arguments follow.
        Raises ValueError if the ask's timeout is not a number from 0 to 1e9.
        """
        raise NotImplementedError

    def _timers(
        self, ask: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Timers:
        """Return the timers to use.

        Raises TypeError if the system is unknown, and ValueError if the timeout is wrong.
        """
        asked, given = _asked(ask, args)
        if is_recipient(asked):
            timeout = given[1] if len(given) > 1 else kwargs.get("timeout")
            checks.timeout("the timeout of ask()", timeout)
        if self._own_timers is not None:
            return self._own_timers
        owner = getattr(ask, "__self__", None)
        if isinstance(owner, AskPolicy) and args:
            return owner._timers(args[0], args[1:], kwargs)
        found = timers_in(system_of(ask, args))
        if found is None:
            raise TypeError(
                f"{safe_repr(ask)} is not a method of a ref of an actor system: "
                f"pass the system whose timers {type(self).__name__} uses as system="
            )
        return found


def system_of(ask: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the system of the ref that is asked in the end, or None."""
    return getattr(_asked(ask, args)[0], "system", None)


def _asked(ask: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the ref that is asked in the end, or another owner of a method, and the arguments."""
    owner = getattr(ask, "__self__", None)
    while isinstance(owner, AskPolicy) and args:
        owner, args = getattr(args[0], "__self__", None), args[1:]
    return owner, args


def timers_in(system: Any) -> Timers | None:
    """Return the timers of an actor system; None for anything else."""
    found = getattr(getattr(system, "_runtime", None), "timers", None)
    return found if isinstance(found, Timers) else None


def called(ask: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
    """Call, and return the future. An error of the call itself is one of the future."""
    future: Future[Any]
    try:
        future = ask(*args, **kwargs)
        if not isinstance(future, Future):
            raise TypeError(f"{safe_repr(ask)} returned no future: {safe_repr(future)}")
    except Exception as error:
        future = Future()
        future.set_exception(error)
    return future


def kinds_of(what: str, on: Any) -> tuple[type[BaseException], ...]:
    """Return the classes of exceptions that an option has, one or a tuple. Raises TypeError."""
    kinds = on if isinstance(on, tuple) else (on,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"{what} expects classes of exceptions, got {safe_repr(on)}")
    return kinds
