"""The settings of the actor system in a worker process, as the driver knows them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from callboard.core.errors import ConfigError
from callboard.mailboxes import BoundedMailbox
from callboard.scheduling.config import Config, read_file
from callboard.spark.tasks.pickling import pickle_for_tasks


@dataclass(frozen=True)
class SystemSettings:
    """A number of workers, or None for the task's CPUs, and a configuration.

    They are equal when their configurations pickle to the same bytes: a policy in one need not know
    what it is equal to.
    """

    workers: int | None
    config: Any = field(compare=False)
    digest: bytes = field(repr=False)

    @classmethod
    def read(cls, config: Any, workers: int | None) -> Self:
        """Read and check the settings, on the driver; a file need not be on the workers' machines.

        Raises ConfigError, and CaptureError for a configuration that cannot be pickled.
        """
        if isinstance(config, (str, os.PathLike)):
            config = read_file(config)
        if config is not None and not isinstance(config, (Mapping, Config)):
            raise ConfigError(f"config wants a dict or the path of a TOML file, not {config!r}")
        if not isinstance(config, Config):
            # Which cores there are to be pinned to, only the worker's machine knows.
            here = {key: value for key, value in (config or {}).items() if key != "pin"}
            Config.load(here, mailbox=BoundedMailbox, workers=1 if workers is None else workers)
        pickled = pickle_for_tasks("config", config, keep=True)
        return cls(workers, config, hashlib.sha256(pickled).digest())
