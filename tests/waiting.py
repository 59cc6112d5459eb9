"""Waiting for what other threads do."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
