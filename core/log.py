"""The log of events: start, stop, failure, overflow. Normal handling of messages has no events.

Events have keyword values, by structlog. They go to the standard library's logger `callboard`, so
they follow the application's configuration of logging. By default, events below WARNING are silent.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from typing import Any

import structlog

from callboard.core.interrupts import comes_from_signal
from callboard.core.text import cut, one_line, safe_repr, safe_str


class _ContainedLogger(structlog.stdlib.BoundLogger):
    """A logger that prints the exceptions of its filters and handlers, even SystemExit.

    The runtime logs in the middle of a restart or a stop, which must be completed, and on workers,
    which must go on.
    """

    def _proxy_to_logger(
        self, method_name: str, event: str | None = None, *event_args: str, **event_kw: Any
    ) -> Any:
        try:
            return super()._proxy_to_logger(method_name, event, *event_args, **event_kw)
        except BaseException as error:
            if comes_from_signal(error):
                raise
            if logging.raiseExceptions:
                with contextlib.suppress(BaseException):  # there may be no sys.stderr
                    traceback.print_exc()


def _format_exception(logger: Any, method: str, event: Any) -> Any:
    """Replace `exc_info` by a traceback, or by a stand-in where an exception cannot be printed."""
    error = event.get("exc_info")
    try:
        return structlog.processors.format_exc_info(logger, method, event)
    except BaseException as failure:  # it has notes, or another attribute, that raise
        if comes_from_signal(failure):
            raise
        event.pop("exc_info", None)
        event["exception"] = f"{type(error).__qualname__}: {safe_str(error)}"
        return event


# The frames between the caller and the standard library's logger: three of structlog, and one of
# this module. A compiled caller has no frame, so its records have the place of the code around it.
_FRAMES = 4
_LONGEST_TRACE = 20_000  # characters


def _render(logger: object, method: str, event: Any) -> Any:
    """Render `event key=value ...`, and a traceback on further lines, for the logger's call.

    Both may contain texts of strangers. These are cut, they do not begin a line, and they send only
    printable characters to a terminal.
    """
    trace = cut(event.pop("exception", ""), _LONGEST_TRACE)
    name = str(event.pop("event"))
    values = (
        f"{key}={one_line(cut(value) if isinstance(value, str) else safe_repr(value))}"
        for key, value in event.items()
    )
    lines = [" ".join([name, *values]), *(f"  {one_line(cut(line))}" for line in trace.split("\n"))]
    return ("\n".join(lines if trace else lines[:1]),), {"stacklevel": _FRAMES + 1}


log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger("callboard"),
    wrapper_class=_ContainedLogger,
    processors=[
        structlog.stdlib.filter_by_level,
        _format_exception,
        _render,
    ],
)
