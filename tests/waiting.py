"""Waiting for what other threads do."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], what: str = "the condition", within: float = 60) -> None:
    """Return when the condition holds, and fail if it does not within so many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"never came to be: {what}"
        time.sleep(0.001)
