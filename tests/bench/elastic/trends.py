"""The paper's strategy: trends of the throughput, at levels whose measurements are trusted.

It is Figure 7 of Schneider and Wu, "Low-Synchronization, Mostly Lock-Free, Elastic Scheduling for
Streaming Runtimes" (PLDI 2017), with these readings of what the figure leaves open:

- `changeInLoad` is "similar to Algorithm 3" of Gedik et al. (2014), which compares the throughput
  with the first one since this level was entered. We know that algorithm only by what others say
  of it. After a visit to another level we compare with the last throughput here.
- The level's steps grow with the level: 1, 2, 3, 4, 6, 9, 13 and so on.
- A change is put off while a thread cannot be suspended (section 4.2.3).
"""

from __future__ import annotations

from dataclasses import dataclass

from callboard.scheduling.elasticity.decision import Decision, rate, stuck, workers
from callboard.scheduling.elasticity.level_bounds import stepped
from callboard.scheduling.elasticity.measurement import Measurement


def stays(count: int) -> str:
    """Return "1 worker stays", "2 workers stay"."""
    return f"{workers(count)} {'stays' if count == 1 else 'stay'}"


@dataclass
class _ThreadRecord:
    last_time: int = -1
    first: float = 0.0
    last: float = 0.0
    trusted: bool = False


class Trends:
    """Look for the level above which the throughput rises no more (Figure 7)."""

    def __init__(
        self, least: int, most: int, sensitivity: float = 0.05, ceiling: float = 0.8
    ) -> None:
        self._levels = stepped(least, most, 0.5)
        self._sensitivity = sensitivity
        self._ceiling = ceiling
        self._records = [_ThreadRecord() for _ in self._levels]
        self._at = 0  # the index of the level
        self._time = 0

    def decide(self, measurement: Measurement) -> Decision:
        """Return the next period's level: `updateThreadLevel`."""
        level = measurement.level
        if measurement.stuck:
            return Decision(level, f"{stays(level)}: {stuck(measurement.stuck)}.")
        if level != self._levels[self._at]:  # the system began elsewhere, or has moved it
            self._at = max(0, sum(1 for each in self._levels if each <= level) - 1)
            if level != self._levels[self._at]:
                return Decision(
                    self._levels[self._at], f"{level} is none of the levels that are tried."
                )
        throughput = measurement.throughput
        changed = self._load_changed(throughput)
        if changed:
            for record in self._records:
                record.trusted = False
        self._record(throughput)
        step, why = self._step(measurement)
        self._at = max(0, min(len(self._levels) - 1, self._at + step))
        if changed:
            why = f"The load has changed. {why}"
        return Decision(self._levels[self._at], why)

    def _load_changed(self, throughput: float) -> bool:
        record = self._records[self._at]
        before = record.first if record.last_time == self._time - 1 else record.last
        return record.trusted and abs(throughput - before) > self._sensitivity * before

    def _record(self, throughput: float) -> None:
        record = self._records[self._at]
        record.last_time = self._time
        self._time += 1
        record.last = throughput
        if not record.trusted:
            record.first = throughput
        record.trusted = True

    def _step(self, measurement: Measurement) -> tuple[int, str]:
        throughput, level = measurement.throughput, measurement.level
        below, above = self._neighbour(-1), self._neighbour(+1)
        rising = below is not None and below.trusted and self._exceeds(throughput, below.last)
        climbs = above is not None and above.trusted and self._exceeds(above.last, throughput)
        untried = above is None or not above.trusted
        now = f"{workers(level)} did {rate(throughput)}"
        wanted = ""
        if climbs and above is not None:
            wanted = f"{now}, and more workers did {rate(above.last)}."
        elif rising and untried and below is not None:
            wanted = f"{now}, and fewer did {rate(below.last)}: more are tried."
        elif below is None and untried:
            wanted = f"{now}, and more have not been tried."
        if wanted and above is None:
            return 0, f"{now}: that is the largest level."
        if wanted and measurement.machine <= self._ceiling:
            return 1, wanted
        if below is not None and not below.trusted:
            return -1, f"{now}, and fewer have not been tried."
        if below is not None and not rising:
            return -1, f"{now}, which is no more than fewer did, {rate(below.last)}."
        if wanted:
            used, ceiling = f"{measurement.machine:.0%}", f"{self._ceiling:.0%}"
            return 0, f"{now}. The machine is used to {used}, above {ceiling}: none is added."
        return 0, f"{now}: fewer did less, and more did no more."

    def _neighbour(self, step: int) -> _ThreadRecord | None:
        at = self._at + step
        return self._records[at] if 0 <= at < len(self._records) else None

    def _exceeds(self, more: float, less: float) -> bool:
        return more - less > self._sensitivity * less
