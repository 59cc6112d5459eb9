from typing import final

from callboard.core.monitoring.time_distribution import TimeDistribution

@final
class ClassTimes:
    def read(self) -> tuple[TimeDistribution, TimeDistribution]: ...
