"""Tracebacks that begin where a user's code does."""

from __future__ import annotations

_OURS = ("callboard._inside.", "callboard.scheduling.")


def from_users_code(error: BaseException) -> BaseException:
    """Drop the first frames of an exception: those of the runtime, which called the user's code.

    If there are no other frames, they stay. Returns the exception.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        trace = trace.tb_next
    return error if trace is None else BaseException.with_traceback(error, trace)
