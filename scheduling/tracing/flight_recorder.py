"""The flight recorder's options, which a configuration checks when it is loaded."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.scheduling.tracing.formats import check_path, format_for

ARROWS = 1000
"""One of so many messages has an arrow in a trace that does not say otherwise."""


def check_arrows(what: str, value: Any) -> int:
    """Check that one of `value` messages may have an arrow. Raises ConfigError."""
    return checks.whole(what, value, most=1_000_000_000, error=ConfigError)


@dataclass(frozen=True)
class FlightRecorder:
    """Keep a system's latest trace in memory, to be written when something went wrong.

    With a `path` the file is written when an actor fails and when a drain times out, at most once
    in `seconds`, and replaces the one before. `signal` is the number of a signal that has it
    written, too; the system is made in the main thread then. `dump_trace(system)` writes it at
    any time.

    Memory holds the last `seconds`, and at most `limit` bytes. One of `arrows` messages has an
    arrow, from the dispatch that sent it to the one that took it. Raises ConfigError.
    """

    seconds: float = 10.0
    path: str | os.PathLike[str] | None = None
    limit: int = 64_000_000
    signal: int | None = None
    arrows: int = ARROWS

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
                raise ConfigError(f"`signal` {what} has the trace written, and needs a `path`")


def check_trace(key: str, value: Any) -> str | FlightRecorder:
    """Check a system's setting `trace`. Raises ConfigError."""
    if isinstance(value, FlightRecorder):
        return value
    return check_path(f"{key}, if it is no FlightRecorder,", value)
