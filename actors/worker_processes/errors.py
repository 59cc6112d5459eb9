"""Errors of worker processes."""

from __future__ import annotations

from callboard.core.errors import CallboardError


class ProcessLost(CallboardError):
    """A worker process ended while it had a round of rows, or records of a net.

    It is the cause of a StreamError or a BoxError if they were sent to several processes, and all
    ended.
    """
