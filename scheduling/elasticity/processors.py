"""The use of the processors, by all processes and by this one."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from callboard.core.threads.cores import limiting_group

_STAT = Path("/proc/stat")
_IDLE, _WAITING_FOR_DISKS = 3, 4
# After these come the guests, whose time is part of that of the users.
_KINDS = 8


@dataclass(frozen=True)
class _Look:
    clock: float
    process: float
    machine: tuple[int, int] | None  # ticks that were used, and all
    group: float | None  # seconds that the control group has used


class Processors:
    """The use of the processors since the last reading."""

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._limit = limiting_group()
        self._before = self._look()

    def read(self) -> tuple[float, float]:
        """Return the part that all processes used, 0 to 1, and the processors that this one used.

        The part is that of the machine, or of the control group's quota if that is larger. It is 0
        if both are unknown.
        """
        before, now = self._before, self._look()
        self._before = now
        seconds = now.clock - before.clock
        if seconds <= 0:
            return 0.0, 0.0
        parts = [0.0]
        if before.machine and now.machine and now.machine[1] > before.machine[1]:
            used = now.machine[0] - before.machine[0]
            parts.append(used / (now.machine[1] - before.machine[1]))
        if self._limit and before.group is not None and now.group is not None:
            parts.append((now.group - before.group) / seconds / self._limit[1])
        return min(1.0, max(parts)), max(0.0, (now.process - before.process) / seconds)

    def _look(self) -> _Look:
        group = _group_seconds(self._limit[0]) if self._limit else None
        return _Look(time.monotonic(), time.process_time(), _machine_ticks(self._stat), group)


def queued_ns(thread: int) -> int:
    """Return the total time that a thread of this process waited for a processor; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1])
    return 0


def _machine_ticks(stat: Path) -> tuple[int, int] | None:
    """Return the used ticks of the machine's processors, and all ticks."""
    try:
        with stat.open() as lines:
            name, *texts = next(lines, "").split()
        ticks = [int(text) for text in texts[:_KINDS]]
    except (OSError, ValueError):
        return None
    if name != "cpu" or len(ticks) <= _WAITING_FOR_DISKS:
        return None
    return sum(ticks) - ticks[_IDLE] - ticks[_WAITING_FOR_DISKS], sum(ticks)


def _group_seconds(group: Path) -> float | None:
    """Return the seconds that a control group of version 2 or 1 has used."""
    with suppress(OSError, ValueError):
        lines = (group / "cpu.stat").read_text().splitlines()
        used = dict(line.split() for line in lines)
        if "usage_usec" in used:
            return int(used["usage_usec"]) / 1e6
    with suppress(OSError, ValueError):
        return int((group / "cpuacct.usage").read_text()) / 1e9
    return None
