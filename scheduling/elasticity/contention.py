"""Contention: workers wait for each other or for a processor, so fewer would do as much.

Such workers are busy but useless, so two levels are compared, and the lower one has the benefit of
the doubt.
"""

from __future__ import annotations

from callboard.scheduling.elasticity.decision import Decision, did, number, rate, workers
from callboard.scheduling.elasticity.level_bounds import LevelBounds
from callboard.scheduling.elasticity.light_load import HIGH, is_behind, workers_for
from callboard.scheduling.elasticity.measurement import NOISE, SATURATED, Measurement, demand

_DEARER = 1.5
"""The ratio of the workers' time for a message that no noise of 10% on all four values makes."""
_COUNTABLE = 100
"""The messages and rows that a period needs: of fewer, one more or less exceeds noise of 10%."""
_LESS = 0.8
"""A throughput below this part of another is less in spite of noise."""
_STARVED = 0.25
"""Waits for a processor count from this part of the busy time on."""
_LOOKS = 4
"""The looks at a load on one level: with more, noise would look like contention in the end."""
_MOST_SEEN = 16


class Contention:
    """Compares a level with the one before, after a decision for more or fewer workers."""

    def __init__(self, bounds: LevelBounds) -> None:
        self._bounds = bounds
        self._raised: Measurement | None = None  # what was measured when workers were added
        self._lowered: Measurement | None = None
        self._starved: Measurement | None = None  # in the period before, if workers were
        self._seen: list[Measurement] = []  # the first of each load at each level, once a look

    def note(self, now: Measurement, level: int) -> None:
        """Remember that `level` is next."""
        self._raised = now if level > now.level else None

    def judge(self, now: Measurement) -> Decision | None:
        """Return the level to keep, if the latest change shows it."""
        raised, lowered = self._raised, self._lowered
        self._raised = self._lowered = None
        if raised is not None and now.level > raised.level:
            return _fewer_did(now, raised)
        if lowered is None or now.level >= lowered.level:
            return None
        enough = now.busy <= HIGH * now.level and now.throughput > _LESS * lowered.throughput
        if enough or now.throughput >= lowered.throughput:
            return Decision(now.level, f"{did(now)}, and {did(lowered)}: fewer are enough.")
        return Decision(lowered.level, f"{did(now)}, and {did(lowered)}.")

    def fewer(self, now: Measurement, before: Measurement | None) -> Decision | None:
        """Return a lower level to try instead of a kept one, if its workers are starved.

        They are busy, but have too few processors. Two periods in a row have to show it.
        """
        starved, self._starved = self._starved, None
        full = demand(now) >= SATURATED * now.level or is_behind(now, before)
        if not self._looks_at(now) or full or now.starved < _STARVED * now.busy:
            return None
        self._starved = now
        if starved is None or starved.level != now.level:
            return None
        running = max(each.busy - min(each.starved, each.busy) for each in (starved, now))
        target = self._bounds.clipped(workers_for(running))
        if target >= now.level:
            return None
        self._lowered, self._starved = now, None
        self._seen += [now] * _LOOKS  # it is not tried again
        waits = f"{number(now.starved)} of {number(now.busy)} that were busy waited for a processor"
        return Decision(target, f"{did(now)}, and {waits}: {target} may do as much.")

    def _looks_at(self, now: Measurement) -> bool:
        """Count a look at this load at this level; return whether it is one of the first."""
        alike = [
            each
            for each in self._seen
            if each.level == now.level
            and each.throughput < NOISE * now.throughput
            and now.throughput < NOISE * each.throughput
        ]
        if len(alike) < _LOOKS:
            self._seen = [*self._seen[1 - _MOST_SEEN * _LOOKS :], alike[0] if alike else now]
        return len(alike) < _LOOKS


def _fewer_did(now: Measurement, before: Measurement) -> Decision | None:
    dearer = now.busy * before.throughput > _DEARER * before.busy * now.throughput
    counted = before.throughput * before.seconds >= _COUNTABLE
    full = demand(now) >= SATURATED * now.level
    if full or now.throughput > before.throughput or not dearer or not counted:
        return None
    less = f"no more than {workers(before.level)} in less of their time: {rate(before.throughput)}"
    return Decision(before.level, f"{did(now)}, {less}.")
