"""Reports of the exceptions that actors raised."""

from __future__ import annotations

import copy
import traceback
from dataclasses import dataclass, field

from callboard.core.errors import ActorFailed
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_str


@dataclass(frozen=True, slots=True)
class FailureReport:
    """A report of the exception that an actor raised, without the exception; its text as a string.

    Not the exception itself: its traceback would keep the actor alive, and the message in work.
    """

    type: type[BaseException]
    """The exception's class."""
    text: str
    """The exception as a string."""
    _trace: traceback.TracebackException | None = field(repr=False, compare=False)

    @classmethod
    def of(cls, error: BaseException) -> FailureReport:
        """Note an exception's text, and where it was raised, with its causes."""
        try:
            # Without the source's lines: those are read if somebody wants the text.
            trace = traceback.TracebackException.from_exception(error, lookup_lines=False)
        except BaseException as failure:  # an attribute may be a property that raises
            if comes_from_signal(failure):
                raise
            trace = None
        return cls(type(error), safe_str(error), trace)

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

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class End:
    """Why an actor has stopped, where a failure was the reason."""

    why: str
    report: FailureReport
    _cause: ActorFailed | None = None

    @property
    def cause(self) -> ActorFailed:
        """An exception for the `__cause__` of others: its text is the traceback."""
        if self._cause is None:
            self._cause = ActorFailed(f"\n{self.report.traceback.rstrip()}")
        return self._cause
