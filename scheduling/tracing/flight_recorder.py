"""The options of the flight recorder, which are checked when a configuration is loaded."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.scheduling.tracing.formats import check_path, format_for

ARROWS = 1000
"""By default, one message in this number has an arrow in a trace."""


def check_arrows(what: str, value: Any) -> int:
    """Check a number of messages of which one has an arrow. Raises ConfigError."""
    return checks.whole(what, value, most=1_000_000_000, error=ConfigError)


@dataclass(frozen=True)
class FlightRecorder:
    """Keeps a system's latest trace in memory, and writes it to a file when something goes wrong.

    `dump_trace(system)` writes it at any time. Raises ConfigError for an invalid option.
    """

    seconds: float = 10.0
    """The length of the trace in memory, and the least time between two files."""
    path: str | os.PathLike[str] | None = None
    """A file that is written, or replaced, when an actor fails and when a drain times out."""
    limit: int = 64_000_000
    """The most bytes in memory."""
    signal: int | None = None
    """A signal at which the file is written, too. Make such a system in the main thread."""
    arrows: int = ARROWS
    """One message in this number has an arrow, from its sender's dispatch to its receiver's."""

    def __post_init__(self) -> None:
        what = "of a FlightRecorder"
        checks.seconds(f"`seconds` {what}", self.seconds, zero=False, error=ConfigError)
        checks.whole(f"`limit` {what}", self.limit, error=ConfigError)
        check_arrows(f"`arrows` {what}", self.arrows)
        if self.path is not None:
            format_for(check_path(f"`path` {what}", self.path), None)
        if self.signal is not None:
            checks.whole(f"`signal` {what}", self.signal, most=signal.NSIG - 1, error=ConfigError)
            if self.path is None:
                raise ConfigError(f"`signal` {what} writes the trace, and needs a `path`")


def check_trace(key: str, value: Any) -> str | FlightRecorder:
    """Check a system's setting `trace`. Raises ConfigError."""
    if isinstance(value, FlightRecorder):
        return value
    return check_path(f"{key}, or a FlightRecorder", value)
