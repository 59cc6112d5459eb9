"""The cost of a part of a run: time, CPU seconds, context switches."""

from resource import RUSAGE_SELF, getrusage
from time import perf_counter


class Watch:
    """Run from its making to `stop()`, for this process or for the children that end meanwhile."""

    def __init__(self, whose: int = RUSAGE_SELF) -> None:
        self.whose = whose
        self.begin = self.now()

    def now(self) -> tuple[float, float, float]:
        used = getrusage(self.whose)
        switches = used.ru_nvcsw + used.ru_nivcsw
        return perf_counter(), used.ru_utime + used.ru_stime, switches

    def stop(self) -> dict[str, float]:
        """Return what was spent, under the names that a `Result` has for it."""
        seconds, cpu, switches = (b - a for a, b in zip(self.begin, self.now(), strict=True))
        return {"seconds": seconds, "cpu": cpu, "switches": switches}
