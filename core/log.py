"""Events: start, stop, failure, overflow. Never called for a message that goes its normal way.

Events are structlog's, with keyword values, and go to the standard library's logger `callboard`, so
they follow whatever logging the application has set up, and are silent below WARNING by default.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

import structlog

from callboard.core.text import safe_repr


class _Unfailing(logging.LoggerAdapter[logging.Logger]):
    """A logger whose filters and handlers may raise without anyone else's harm.

    The runtime logs in the middle of a restart or a stop, which must come to its end. What they
    raise is printed, as the standard library does for handlers.
    """

    @property
    def disabled(self) -> bool:
        """Whether it is; structlog asks."""
        return self.logger.disabled

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        try:
            self.logger.log(level, msg, *args, **kwargs)
        except Exception:
            if logging.raiseExceptions:
                traceback.print_exc()


def _render(logger: object, method: str, event: Any) -> str:
    """Render `event key=value ...`, and a traceback on lines of its own."""
    trace = event.pop("exception", "")
    name = str(event.pop("event"))
    values = (
        f"{key}={value if isinstance(value, str) else safe_repr(value)}"
        for key, value in event.items()
    )
    text = " ".join([name, *values])
    return f"{text}\n{trace}" if trace else text


log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    _Unfailing(logging.getLogger("callboard"), {}),
    wrapper_class=structlog.stdlib.BoundLogger,
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.processors.format_exc_info,
        _render,
    ],
)
