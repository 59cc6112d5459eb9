"""The number of cores that this process may use at a time."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of threads of this process that can run at a time, at least 1.

    The process's affinity limits them, and so does the quota of processor time of its control
    group, such as a container. A part of a core counts as one.
    """
    limit = limiting_group()
    quotas = [] if limit is None else [limit[1]]
    return max(1, math.ceil(min([len(os.sched_getaffinity(0)), *quotas])))


def limiting_group() -> tuple[Path, float] | None:
    """Return the control group with the smallest quota, and the cores that it grants, if any."""
    quotas = [(group, _quota(group)) for group in _control_groups()]
    limits = [(group, quota) for group, quota in quotas if quota is not None]
    return min(limits, key=lambda limit: limit[1], default=None)


def _control_groups() -> list[Path]:
    """List the folders of the process's groups, up to the root: a limit holds below it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / controllers if controllers else _CGROUPS
        here = root / path.lstrip("/")
        found += [here, *(above for above in here.parents if above.is_relative_to(root))]
    return found


def _quota(group: Path) -> float | None:
    """Return the cores that a group of version 2 or 1 grants, or None without a limit."""
    try:
        limit, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            limit = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        except OSError:
            return None
    try:
        cores = int(limit) / int(period)
    except (ValueError, ZeroDivisionError):  # "max"
        return None
    return cores if cores > 0 else None
