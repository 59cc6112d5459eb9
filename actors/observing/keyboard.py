"""Single keys of a terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self


class Keyboard:
    """Reads the keys that are pressed, one at a time, until its `with` block is left.

    Where the standard input is no terminal there are none. One thread.
    """

    def __init__(self) -> None:
        self._input = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        if self._input is not None:
            self._before = termios.tcgetattr(self._input)
            tty.setcbreak(self._input)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._input is not None:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """Wait for input for so many seconds at most. Return it, which may be several keys."""
        watched = [] if self._input is None else [self._input]
        ready, _, _ = select.select(watched, [], [], max(seconds, 0.0))
        return os.read(ready[0], 1024).decode(errors="replace") if ready else ""
