"""Tracebacks that begin where a user's code does, and what threads do just now."""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType

_OURS = ("callboard._inside.", "callboard.scheduling.")
_looking = threading.Lock()


def current_frames() -> dict[int, FrameType]:
    """Return the frame of each thread, by its identifier, without a garbage collection meanwhile.

    CPython 3.11 keeps its list of threads locked, and makes a dictionary. A collection that this
    begins waits for the same lock for ever if it ends a `threading.local` (python/cpython#106883).
    """
    with _looking:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            if collects:
                gc.enable()


def from_users_code(error: BaseException) -> BaseException:
    """Drop the first frames of an exception: those of the runtime, which called the user's code.

    If there are no other frames, they stay. Returns the exception.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        trace = trace.tb_next
    return error if trace is None else BaseException.with_traceback(error, trace)
