"""A full load keeps all workers busy: the level is the one with the largest throughput."""

from __future__ import annotations

from collections.abc import Mapping

from callboard.scheduling.elasticity.decision import Decision, did, number, rate, workers
from callboard.scheduling.elasticity.level_bounds import LevelBounds
from callboard.scheduling.elasticity.level_search import Search
from callboard.scheduling.elasticity.light_load import AIM, is_behind, workers_for
from callboard.scheduling.elasticity.measurement import (
    GROWS,
    SATURATED,
    Measurement,
    Steady,
    demand,
    growth,
    is_held_back,
    works_off,
)
from callboard.scheduling.elasticity.remembered_loads import Remembered, program_of

_SOON = 3
"""A backlog that is gone in fewer periods needs no other level."""
_LESS = 0.8
"""A throughput below this part of another is less in spite of noise."""
_LEFT = 0.75
"""If other processes leave this many more processors, another level may do the most."""


class FullLoad:
    """Finds the levels of successive full loads."""

    def __init__(self, bounds: LevelBounds, memory: Remembered) -> None:
        self._bounds = bounds
        self._memory = memory
        self._search: Search | None = None
        self._steady: Steady | None = None  # once the level is kept
        self._others: float | None = None  # processors that others used when it was first kept
        self._spare = False  # at the kept level, not all workers were busy
        self._rising = False  # the load was light a period ago
        self._moved: list[float] = []  # the throughputs that showed another load
        # Throughputs by level, to compare with that of the next period.
        self._expected: Mapping[int, float] = {}

    def begin(self, rising: bool = False) -> None:
        """Begin with another load. If a light load rises, more workers are tried first."""
        self._search, self._steady, self._spare, self._rising = None, None, False, rising
        self._expected, self._moved, self._others = {}, [], None

    def settle(self) -> None:
        """Keep the level until the load moves."""
        self.begin()
        self._steady = Steady()

    def keeps(self, now: Measurement, before: Measurement | None) -> Decision | None:
        """Keep the level until the throughput moves, or clearly not all workers are busy.

        While a backlog is worked off, the throughput is not that of the load.
        """
        if self._steady is None:
            return None
        if works_off(now, before) is not None:
            return _working_off(now)
        others = self._bounds.others(now)
        self._others = others if self._others is None else self._others
        if self._others - others >= _LEFT:
            self._moved, self._steady = [], None
            return None
        self._moved = self._steady.moved(now.throughput)
        too_few = self._spare and (is_behind(now, before) or is_held_back(now))
        if not self._moved and not too_few and demand(now) >= AIM * now.level:
            return self._verified(now)
        self._steady = None
        return None

    def decide(self, now: Measurement, before: Measurement | None) -> Decision:
        """Return the level of the next period, if no level is kept."""
        level = now.level
        left = works_off(now, before)
        if left is not None and left < _SOON:
            if self._search is not None:
                self._search.note(level, now.throughput)
            return _working_off(now)
        if self._search is None:
            return self._begin(now, before, self._moved or [now.throughput])
        self._search.add(level, now.throughput)
        if demand(now) < SATURATED * level and level == max(self._search.measured):
            # The throughput is limited by the input, not by the number of workers.
            self.settle()
            self._spare = True
            return Decision(level, f"{did(now)}, and not all were busy all the time.")
        return self._recognised(now) if self._expected else self._go_on(now)

    def _begin(
        self, now: Measurement, before: Measurement | None, throughputs: list[float]
    ) -> Decision:
        """Try a first level: a remembered one, or one for the demand, or a likely one."""
        rising = self._rising
        self.begin()
        level = now.level
        self._search = Search(self._bounds.most)
        for throughput in throughputs:
            self._search.add(level, throughput)
        known = self._memory.recall(_program(now), level, now.throughput)
        highest, why = self._bounds.highest(now)
        if known:
            best = max(known, key=lambda each: known[each])
            if best <= highest:
                self._expected = known
                return Decision(
                    best,
                    f"{did(now)}, as once before: then {best} did {rate(known[best])}.",
                )
        more = max(0.0, growth(now, before))
        if more > GROWS or demand(now) < SATURATED * level:
            if level >= highest:
                self._search, self._steady = None, None if more > GROWS else Steady()
                return Decision(
                    self._bounds.clipped(min(level, highest)), f"{did(now)}, and {why}."
                )
            target = max(level + 1, min(highest, workers_for(now.busy * (1 + more))))
            busy = f"busy for {now.busy / level:.0%} of the time"
            sign = f"and {number(now.waiting)} wait" if more > GROWS else busy
            return Decision(target, f"{did(now)}, {sign}: {target} should be enough.")
        return self._go_on(now, level if rising else 0)

    def _recognised(self, now: Measurement) -> Decision:
        """Keep a remembered level if it does what it did before, else search without it."""
        known = self._expected.get(now.level, 0.0)
        if now.throughput > _LESS * known:
            self.settle()
            return Decision(now.level, f"{did(now)}, as it did before.")
        self._expected = {}
        return self._go_on(now)

    def _go_on(self, now: Measurement, lowest: int = 0) -> Decision:
        assert self._search is not None
        highest, why = self._bounds.highest(now)
        levels = self._bounds.levels(highest)
        above = [level for level in levels if level > lowest]
        target, ended = self._search.next(above or levels)
        measured = self._search.measured
        tried = ", ".join(f"{level}: {number(measured[level])}" for level in sorted(measured))
        if not ended:
            return Decision(target, f"{did(now)}; {target} may do more. Tried: {tried}.")
        self._memory.learn(_program(now), measured)
        self.settle()
        if target not in measured:
            self._expected = measured
        most = "should do the most"
        best = max(measured, key=lambda each: measured[each])
        if target not in measured:
            most += ", though it was not tried"
        elif best > highest:
            most += f" of up to {highest}, as {why}"
        elif measured[target] < measured[best]:
            most = f"should do as much as {best}"
        return Decision(target, f"{did(now)}; {target} {most}. Tried: {tried}.")

    def _verified(self, now: Measurement) -> Decision:
        """Go back if a level that was only predicted does clearly less than one that was tried."""
        expected, self._expected = self._expected, {}
        if expected:
            best = max(expected, key=lambda each: expected[each])
            if now.throughput < _LESS * expected[best] and best <= self._bounds.highest(now)[0]:
                self._steady = Steady()
                return Decision(best, f"{did(now)}, and {best} did {rate(expected[best])}.")
        return Decision(now.level, f"{did(now)}: the load is the same.")


def _working_off(now: Measurement) -> Decision:
    work = "works" if now.level == 1 else "work"
    left = f"{number(now.waiting)} are left"
    return Decision(now.level, f"{workers(now.level)} {work} off what waits: {left}.")


def _program(now: Measurement) -> str:
    return program_of(stage.name for stage in now.stages)
