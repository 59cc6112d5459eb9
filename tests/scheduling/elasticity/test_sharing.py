"""Several systems on one machine see the processors that the others use."""

import re

import pytest

from callboard.scheduling.elasticity.measurement import Measurement
from callboard.scheduling.elasticity.rates import Rates

PROCESSORS = 16


class Machine:
    """Saturated systems that share the processors evenly by threads; some begin later."""

    def __init__(self, *begins: int) -> None:
        self.begins = begins
        self.levels = [1] * len(begins)
        self.strategies = [Rates(1, PROCESSORS, processors=PROCESSORS) for _ in begins]
        self.periods = 0

    def period(self) -> None:
        running = [at for at, begin in enumerate(self.begins) if begin <= self.periods]
        threads = sum(self.levels[at] for at in running)
        share = min(1.0, PROCESSORS / threads)
        used = min(1.0, threads / PROCESSORS)
        for at in running:
            level = self.levels[at]
            got = level * share
            now = Measurement(level, 1.0, 1000 * got, busy=level, machine=used, process=got)
            self.levels[at] = self.strategies[at].decide(now).level
        self.periods += 1


@pytest.mark.parametrize("begins", [(0,), (0, 0), (0, 8), (0, 0, 0), (0, 3, 6)])
def test_systems_on_one_machine_do_not_oversubscribe_it(begins: tuple[int, ...]) -> None:
    machine = Machine(*begins)
    for _ in range(12 + max(begins)):
        machine.period()
    for _ in range(20):
        machine.period()
        assert PROCESSORS - 1 <= sum(machine.levels) <= PROCESSORS + len(begins)


@pytest.mark.parametrize("work", [1.0, 0.7, 0.5])
@pytest.mark.parametrize("before", [0, 4, 20])
def test_the_level_recovers_when_a_neighbour_has_left(before: int, work: float) -> None:
    """`work` is the throughput of two workers that share one processor's part, of their own."""
    strategy, level, levels = Rates(1, 2, processors=2), 1, []
    for period in range(before + 20 + 10):
        others = 2 if before <= period < before + 20 else 0
        share = min(1.0, 2 / (level + others))
        got = level * share
        throughput = 1000 * got * (work if others and level == 2 else 1.0)
        now = Measurement(
            level, 1.0, throughput, busy=level, machine=min(1.0, (level + others) / 2), process=got
        )
        decision = strategy.decide(now)
        tried = re.search(r"; (\d) should do the most\. Tried: (.*)\.", decision.reason)
        if tried:
            rates = {
                each[0]: int(each[1].replace(",", ""))
                for each in re.findall(r"(\d+): ([\d,]+\d|\d)", tried[2])
            }
            assert rates[tried[1]] == max(rates.values())
        level = decision.level
        levels.append(level)
    assert levels[before + 20 :] == [2] * 10
