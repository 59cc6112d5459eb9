"""Several systems on one machine: each sees of the others what they use of the processors."""

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
