"""Traces: the way of one record through a net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from callboard.core.text import safe_repr


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A record, or what came of it, at one place and moment.

    `what` says what happened: `came` (to the place), `kept` (in a synchrocell), `left` (the net),
    or `ended` (nothing came of it). `seconds` count from the first step.
    """

    seconds: float
    what: str
    path: str
    record: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.seconds:10.6f} s  {self.what:5} {self.path:30} {safe_repr(self.record)}"


class Trace:
    """The way of a record, step by step, and the outputs. Made by `NetRun.trace`."""

    def __init__(
        self, outputs: list[Any], steps: list[tuple[float, str, str, dict[str, Any]]]
    ) -> None:
        self.outputs = outputs
        began = steps[0][0] if steps else 0.0
        self.steps = [TraceStep(at - began, what, path, record) for at, path, what, record in steps]

    @property
    def paths(self) -> list[str]:
        """The places that it came to."""
        return [step.path for step in self.steps if step.what == "came"]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def __repr__(self) -> str:
        return f"<Trace of {len(self.steps)} steps, {len(self.outputs)} outputs>"
