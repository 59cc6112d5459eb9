"""Tracebacks that begin in the user's code, and the current frames of threads."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import traceback
from types import FrameType

_BELOW = ("threading", "asyncio", "concurrent", "selectors", "contextlib")
_OURS = ("callboard._inside.", "callboard.scheduling.")
_looking = threading.Lock()


def current_frames() -> dict[int, FrameType]:
    """Return the frame of each thread, by its identifier, with the garbage collector disabled.

    CPython 3.11 makes a dictionary while it locks its list of threads. A garbage collection then
    waits for the same lock for ever if it ends a `threading.local` (python/cpython#106883).
    """
    with _looking:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            if collects:
                gc.enable()


def format_stack(frame: FrameType) -> list[str]:
    """Format the stack of a frame from the user's code on, like `traceback.format_stack()`.

    The frames of threads, of event loops and of the runtime before that are left out, unless there
    are no others.
    """
    stack = list(traceback.walk_stack(frame))[::-1]
    of_user = itertools.dropwhile(lambda each: _is_below(each[0]), stack)
    shown = traceback.StackSummary.extract(iter(list(of_user) or stack))
    return shown.format()


def _is_below(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__") or ""
    return name.partition(".")[0] in _BELOW or name.startswith(_OURS)


def from_users_code(error: BaseException) -> BaseException:
    """Drop the runtime's frames before the user's code, unless there are no others.

    Returns the exception.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        trace = trace.tb_next
    return error if trace is None else BaseException.with_traceback(error, trace)
