"""Reports of the exceptions that actors raised."""

from __future__ import annotations

import copy
import traceback
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from callboard.core.errors import ActorFailed
from callboard.core.handles import public_names
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import cut, safe_str

_LONGEST = 10_000  # characters of an exception's text


@dataclass(frozen=True, slots=True)
class FailureReport:
    """A report of the exception that an actor raised, without the exception; its text as a string.

    Not the exception itself: its traceback would keep the actor alive, and the message in work.
    """

    type: type[BaseException]
    """The exception's class."""
    text: str
    """The exception as a string, of which the middle is left out if it is long."""
    _trace: traceback.TracebackException | None = field(repr=False, compare=False)

    @classmethod
    def of(cls, error: BaseException) -> FailureReport:
        """Note an exception's text, and where it was raised, with its causes."""
        try:
            # Without the source's lines: those are read if somebody wants the text.
            trace = traceback.TracebackException.from_exception(error, lookup_lines=False)
            _cut_texts(trace)
        except BaseException as failure:  # an attribute may be a property that raises
            if comes_from_signal(failure):
                raise
            trace = None
        return cls(type(error), cut(safe_str(error), _LONGEST), trace)

    @property
    def summary(self) -> str:
        """The class and the text, as the traceback shows them; without notes."""
        if self._trace is None:
            return f"{self.type.__qualname__}: {self.text}"
        trace = copy.copy(self._trace)
        trace.__notes__ = None  # they come last
        return list(trace.format_exception_only())[-1].strip()

    @property
    def traceback(self) -> str:
        """The traceback, as Python prints it."""
        if self._trace is None:
            return f"{self.summary}\n"
        return "".join(self._trace.format())

    def as_error(self, traceback: str | None = None) -> ActorFailed:
        """Return an exception whose text is the traceback; a new one, as users may raise it."""
        error = ActorFailed(f"\n{(traceback or self.traceback).rstrip()}")
        error.type = self.type
        return error

    def __str__(self) -> str:
        return self.text


def _cut_texts(trace: Any) -> None:
    """Let go of long texts in a traceback and those of its causes: they may repeat a message."""
    left, seen = [trace], set()
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one._str = cut(str(one), _LONGEST)
        if one.__notes__:
            one.__notes__ = [cut(safe_str(note), _LONGEST) for note in one.__notes__]
        left += [one.__cause__, one.__context__, *(one.exceptions or ())]


EndReason = Literal[
    "stopped",
    "failed",
    "failed to start",
    "stopped by supervisor",
    "system stopped",
    "system collected",
]


@dataclass(frozen=True)
class ActorEnd:
    """How an actor ended: the answer of `ref.ended`. Its text says so in words: "was stopped".

    `reason` is one of:

    - `stopped`: `stop()` was called, or its parent stopped.
    - `failed`, `failed to start`: it failed with `error`.
    - `stopped by supervisor`: it was stopped together with another actor, which failed with
      `error`.
    - `system stopped`, `system collected`: its system ended.
    """

    __dir__ = public_names

    reason: EndReason
    why: str = field(repr=False, compare=False)
    cause: FailureReport | None = field(default=None, compare=False)
    """The report of the failure, if there was one."""
    _after: str = field(default="", repr=False, compare=False)

    @classmethod
    def _by_failure(cls, path: str, cause: FailureReport, *, begun: bool) -> ActorEnd:
        """Make the end of an actor by its own failure."""
        reason: EndReason = "failed" if begun else "failed to start"
        why = f"{reason}: {cause.summary}"
        return cls(reason, why, cause, f"{path} {why}")

    def _of_another(self) -> ActorEnd:
        """Make the end of an actor that its supervisor stops because of this end."""
        why = f"was stopped by its supervisor after {self._after}"
        return ActorEnd("stopped by supervisor", why, self.cause, self._after)

    @property
    def error(self) -> ActorFailed | None:
        """The failure as an exception whose text is the traceback, or None."""
        return None if self.cause is None else self.cause.as_error(self._traceback)

    @cached_property
    def _traceback(self) -> str:
        """The text of a traceback takes long, and each message that is left gets it."""
        return "" if self.cause is None else self.cause.traceback

    def __str__(self) -> str:
        return self.why


def plain_ends(system: str) -> dict[EndReason, ActorEnd]:
    """Return the ends of a system's actors that no failure is the reason of."""
    return {
        "stopped": ActorEnd("stopped", "was stopped"),
        "system stopped": ActorEnd(
            "system stopped", f"was stopped: its system {system!r} has stopped"
        ),
        "system collected": ActorEnd(
            "system collected", f"was stopped: its system {system!r} was garbage-collected"
        ),
    }
