"""The reports of a run: its statistics, a line of progress, and the trace of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO

from callboard.core.text import safe_repr
from callboard.observing.progress_line import ProgressLine


@dataclass(slots=True)
class NetStatistics:
    """The figures of a run.

    - `hops`: how often a record came to an entity.
    - `sent`, `put_out`: records that went into the net, and outputs that were taken.
    - `in_cells`: synchrocells that have some of their records. `elsewhere`: records at boxes that
      run on the event loop or on threads. `skipped`: records that became dead letters by errors.
    - `calls`: for each box that runs elsewhere, by its path, how many calls of it are at work.
    - `places`: for each place in the net, by its path: the `records` that came, the `entities`
      that there are, and how many were ever `made`. A box also has the records that are `waiting`
      for a call, the `calls` that have ended, with their `tries` and `failures`, and the seconds
      that all tries took (`busy`), one (`mean`), and the longest (`worst`). Elsewhere a try counts
      from its beginning to its end. `thread` is "worker processes" if it runs there; with
      `processes="auto"`, the `reason` has the measurements.
    """

    hops: int = 0
    sent: int = 0
    put_out: int = 0
    in_cells: int = 0
    elsewhere: int = 0
    skipped: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A record, or an output of it, at a place and a time.

    `what` is the event: `came` (to the place), `kept` (in a synchrocell), `left` (the net), or
    `ended` (without an output). `seconds` is the time since the first step.
    """

    seconds: float
    what: str
    path: str
    record: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.seconds:10.6f} s  {self.what:5} {self.path:30} {safe_repr(self.record)}"


class Trace:
    """The path of a record, step by step, and its outputs. Made by `NetRun.trace`."""

    def __init__(
        self, outputs: list[Any], steps: list[tuple[float, str, str, dict[str, Any]]]
    ) -> None:
        self.outputs = outputs
        began = steps[0][0] if steps else 0.0
        self.steps = [TraceStep(at - began, what, path, record) for at, path, what, record in steps]

    @property
    def paths(self) -> list[str]:
        """The places that the record reached."""
        return [step.path for step in self.steps if step.what == "came"]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def __repr__(self) -> str:
        return f"<Trace of {len(self.steps)} steps, {len(self.outputs)} outputs>"


class NetProgress(ProgressLine):
    """Shows the progress of a run within a `with` block, by a separate thread.

    On a terminal, and in a notebook, it is one line, redrawn `every` seconds; elsewhere a new line
    every 10 seconds.
    """

    def __init__(
        self, look: Callable[[], NetStatistics], every: float, file: TextIO | None = None
    ) -> None:
        super().__init__(every, file)
        self._look = look
        self._hops = 0

    def _line(self, seconds: float) -> str:
        seen = self._look()
        rate, self._hops = (seen.hops - self._hops) / seconds, seen.hops
        return describe(seen, rate)


def describe(seen: NetStatistics, rate: float) -> str:
    """Describe the progress of a run in one line."""
    entities = sum(place["entities"] for place in seen.places.values())
    return (
        f"{seen.sent:,} records sent  {seen.put_out:,} outputs taken  {rate:,.0f} hops a second  "
        f"{seen.elsewhere:,} at boxes elsewhere  {entities:,} entities"
    )
