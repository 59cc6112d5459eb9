"""Errors of graphs and runs, and the record of an input at which an operator raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.errors import GraphError as GraphError  # which a system raises, too
from callboard.core.text import safe_repr
from callboard.worker_processes.errors import ProcessLost as ProcessLost


class RunError(CallboardError):
    """A call of a run failed.

    Raised by `send()`, it says what happened to the rows: `sent` of them went in, and `unsent` were
    taken from the iterable but did not go in.
    """

    sent: int = 0
    unsent: Sequence[Any] = ()


class RunEnded(RunError):
    """The run takes no more rows, or has no result.

    It was finished or cancelled, or its system was stopped.
    """


class SnapshotError(RunError):
    """A snapshot cannot be taken, read or restored. The text names the operator or the file."""

    _is_of_a_later_version = False


class RunTimeout(RunError, TimeoutError):
    """A call of a run took longer than its timeout."""


class StreamError(RunError):
    """An operator raised an exception, which is this one's `__cause__`.

    `operator` is the operator's name, and `row` the row at which it raised. `serial` is that row's
    number in the operator's input, from 0; with several inputs, in its own input. Watermarks are
    numbered, too. If the operator raised elsewhere, `when` says where, as "in flush()"; then `row`
    is None, and `serial` the number of those so far. `serial` is None if it raised at no row in
    particular.
    """

    _raised_by: int = 0  # the id() of the program that stops with it

    def __init__(
        self, operator: str, serial: int | None = None, row: Any = None, when: str = ""
    ) -> None:
        super().__init__(operator, serial, row, when)
        self.operator = operator
        self.serial = serial
        self.row = row
        self.when = when

    def __str__(self) -> str:
        if self.serial is None:
            return f"operator {self.operator!r} failed"
        if self.when:
            inputs = "1 input" if self.serial == 1 else f"{self.serial} inputs"
            return f"operator {self.operator!r} failed {self.when}, after {inputs}"
        return f"operator {self.operator!r} failed at input {self.serial}, {safe_repr(self.row)}"

    def _again(self) -> StreamError:
        """Make another one for the same failure, to be raised: each call raises its own."""
        error = StreamError(self.operator, self.serial, self.row, self.when)
        error.__cause__ = self.__cause__
        return error


@dataclass(frozen=True, slots=True, repr=False)
class FailedRow:
    """An input that was skipped, or sent to a side output, because its operator raised `error`.

    `serial` and `row` are those of `StreamError`.
    """

    operator: str
    serial: int
    row: Any
    error: Exception

    def __repr__(self) -> str:
        return (
            f"FailedRow(operator={self.operator!r}, serial={self.serial}, "
            f"row={safe_repr(self.row)}, error={safe_repr(self.error)})"
        )
