"""Helpers that wait for other threads."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any


def until(condition: Callable[[], object], what: str = "the condition", within: float = 60) -> None:
    """Return when the condition holds, and fail if it does not hold within that many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"never came to be: {what}"
        time.sleep(0.001)


def in_threads(function: Callable[[Any], object], arguments: Iterable[Any]) -> None:
    """Call a function with each argument in a separate thread, and wait for all of them."""
    threads = [threading.Thread(target=function, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
