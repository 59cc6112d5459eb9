"""The settings of the actor system in a worker process, checked on the driver."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from callboard.core.errors import ConfigError
from callboard.mailboxes import BoundedMailbox
from callboard.scheduling.config import Config, read_file
from callboard.spark.tasks.pickling import pickle_for_tasks

Workers = int | str | tuple[int, int]


@dataclass(frozen=True)
class SystemSettings:
    """A number of workers, a range, or None for the task's CPUs, and a configuration.

    They are equal if their configurations pickle to the same bytes, so policies need no `__eq__`.
    """

    workers: Workers | None
    config: Any = field(compare=False)
    digest: bytes = field(repr=False)

    @classmethod
    def read(cls, config: Any, workers: Workers | None) -> Self:
        """Read and check the settings, on the driver; a file need not be on the workers' machines.

        Raises ConfigError, and CaptureError for a configuration that cannot be pickled.
        """
        if isinstance(config, (str, os.PathLike)):
            config = read_file(config)
        if config is not None and not isinstance(config, (Mapping, Config)):
            raise ConfigError(f"config expects a dict or the path of a TOML file, got {config!r}")
        if not isinstance(config, Config):
            # Only the worker's machine knows its cores.
            here = {key: value for key, value in (config or {}).items() if key != "pin"}
            Config.load(here, mailbox=BoundedMailbox, workers=1 if workers is None else workers)
        pickled = pickle_for_tasks("config", config, keep=True)
        return cls(workers, config, hashlib.sha256(pickled).digest())

    def for_task(self, cpus: int) -> Self:
        """Return the settings of a task with `cpus` CPUs, which an elastic level never exceeds."""
        workers = cpus if self.workers is None else _at_most(cpus, self.workers)
        config = self.config
        if isinstance(config, Config):
            if config.elasticity is not None:
                least, most = min(config.least_workers, cpus), min(config.workers, cpus)
                config = replace(config, least_workers=least, workers=most)
        elif config is not None and "workers" in config:
            config = {**config, "workers": _at_most(cpus, config["workers"])}
        return replace(self, workers=workers, config=config)


def _at_most(cpus: int, workers: Workers) -> Workers:
    if isinstance(workers, int):
        return workers
    if isinstance(workers, str):  # "elastic": there is no other
        return 1, cpus
    least, most = workers
    return min(least, cpus), min(most, cpus)
