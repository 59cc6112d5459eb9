"""Ray, started and ended around a part of a benchmark, and the use of its processes."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def ray_with(cores: int) -> Iterator[Any]:
    """Start Ray on this machine for so many cores; its processes are there, and idle."""
    import ray

    ray.init(
        num_cpus=cores,
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        yield ray
    finally:
        ray.shutdown()


def cpu_of_children() -> float:
    """Return the processor seconds of the processes below this one, ended children included.

    Ray's workers are not this process's children, so `getrusage` does not know them.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        own, ended = map(int, fields[11:13]), map(int, fields[13:15])
        ticks[number] = sum(ended) + (sum(own) if number != os.getpid() else 0)
    below = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(ticks.get(each, 0) for each in below) / os.sysconf("SC_CLK_TCK")
