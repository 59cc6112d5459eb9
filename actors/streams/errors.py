"""What can be wrong with a graph, and what happens to an input that an operator raised at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from callboard.core.errors import CallboardError


class GraphError(CallboardError, ValueError):
    """A graph, or an operator's argument, is wrong. Raised where the graph is built."""


class StreamError(CallboardError):
    """An operator raised an exception, which is this one's `__cause__`.

    `operator` is the operator's name, `row` the input that it raised at, and `serial` that input's
    number among all that came to the operator, from 0; of several, among those of one. Watermarks
    are inputs and have numbers, too. At the end of the stream `row` is None, and `serial` the
    number of all inputs. `serial` is None if it raised at no input in particular.
    """

    def __init__(self, operator: str, serial: int | None = None, row: Any = None) -> None:
        super().__init__(operator, serial, row)
        self.operator = operator
        self.serial = serial
        self.row = row

    def __str__(self) -> str:
        if self.serial is None:
            return f"operator {self.operator!r} failed"
        return f"operator {self.operator!r} failed at input {self.serial}, {self.row!r}"


class RunTimeout(CallboardError, TimeoutError):
    """A call of a run took longer than its timeout. `sent` rows of it were taken."""

    sent: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that was skipped, or sent to a side output, because its operator raised `error`.

    `serial` and `row` are those of `StreamError`.
    """

    operator: str
    serial: int
    row: Any
    error: Exception
