"""Errors of nets."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.text import safe_repr, safe_str

MOST_SHOWN = 500  # letters of a record, or of a cause, in an error's text


class NetError(CallboardError):
    """The base of all errors of nets."""

    def _again(self) -> NetError:
        """Return a copy to raise. Each call raises a separate one."""
        error = copy(self)
        error.__cause__ = self.__cause__
        return error

    def __reduce__(self) -> Any:
        """Pickle it with its cause, which a box may read from a record's field `error`."""
        return type(self), self.args, {**self.__dict__, "__cause__": self.__cause__}


class NetSyntaxError(NetError, ValueError):
    """A text is not a valid net, pattern, filter or signature.

    The message shows the place, and what was expected there. `line` and `column` count from 1.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class NetTypeError(NetError, TypeError):
    """Two nets do not fit together, or a net does not fit its signature."""


class RecordError(NetError, ValueError):
    """A record cannot continue. The message shows the record, the place and the reason."""


class BoxError(NetError):
    """A box, or a filter, raised an exception, which is this one's `__cause__`.

    `path` is the place in the net, and `record` is the box's input.
    """

    def __init__(self, path: str, record: Mapping[str, Any]) -> None:
        super().__init__(path, record)
        self.path = path
        self.record = record

    def __str__(self) -> str:
        parts = [f"{self.path} failed"]
        if self.__cause__ is not None:
            parts += [type(self.__cause__).__name__, _shown(safe_str(self.__cause__))]
        return f"{': '.join(filter(None, parts))} (the record was {_shown(safe_repr(self.record))})"

    def __repr__(self) -> str:
        return f"BoxError({str(self)!r})"


class NetEnded(NetError):
    """The run takes no more records, or has no result.

    It was finished or cancelled, or its system was stopped.
    """


class NetTimeout(NetError, TimeoutError):
    """A call of a run took longer than its timeout. `sent` records went in, `unsent` did not."""


def _shown(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
