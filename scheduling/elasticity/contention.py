"""Workers that do no more than fewer would: they spin, or wait for each other or a processor.

To be busy is not to be of use then, so two levels are compared, and the lower one has the benefit
of the doubt.
"""

from __future__ import annotations

from callboard.scheduling.elasticity.decision import Decision, number, rate, workers
from callboard.scheduling.elasticity.level_bounds import LevelBounds
from callboard.scheduling.elasticity.light_load import HIGH, is_behind, workers_for
from callboard.scheduling.elasticity.measurement import NOISE, SATURATED, Measurement, demand

_DEARER = 1.5
"""The ratio of the workers' time for a message that no noise of 10% on all four values makes."""
_COUNTABLE = 100
"""Messages and rows in a period; of fewer, one more or less is no noise of 10%."""
_LESS = 0.8
"""A throughput below this part of another is less in spite of noise."""
_STARVED = 0.25
"""The part of the busy time that waits for a processor, from which on it counts."""
_LOOKS = 4
"""So often a load is looked at on one level: in the end, noise would show what is not there."""
_MOST_SEEN = 16


class Contention:
    """Compares a level with that before it, after more workers or fewer were decided."""

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
            return Decision(now.level, f"{_did(now)}, and {_did(lowered)}: fewer are enough.")
        return Decision(lowered.level, f"{_did(now)}, and {_did(lowered)}.")

    def fewer(self, now: Measurement, before: Measurement | None) -> Decision | None:
        """Return a lower level to try in place of one that is kept, if its workers are starved.

        They are busy, and have not enough processors to be. Two periods in a row have to show it.
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
        return Decision(target, f"{_did(now)}, and {waits}: {target} may do as much.")

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
    return Decision(before.level, f"{_did(now)}, {less}.")


def _did(now: Measurement) -> str:
    return f"{workers(now.level)} did {rate(now.throughput)}"
