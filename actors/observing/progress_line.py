"""A progress line: text in a terminal or notebook that is rewritten from time to time."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self, TextIO

from callboard.core import checks
from callboard.core.markup import paragraph


class _Shown:
    """A line in the output of a cell."""

    def __init__(self, line: str) -> None:
        self._line = line

    def __repr__(self) -> str:
        return self._line

    def _repr_html_(self) -> str:
        return paragraph(self._line)


def _display_of_notebook() -> Callable[..., Any] | None:
    """Return IPython's `display()`, if this program is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    display: Callable[..., Any] = ipython.display.display
    return display


class ProgressLine:
    """Shows a line within a `with` block, by a separate thread.

    On a terminal, and in the output of a notebook's cell, it is one line, redrawn `every` seconds;
    elsewhere a new line every 10 seconds.
    """

    def __init__(self, every: float, file: TextIO | None) -> None:
        every = checks.seconds("every", every, zero=False)
        self._file = sys.stderr if file is None else file
        self._redraws = self._file.isatty()
        self._display = None if self._redraws or file is not None else _display_of_notebook()
        self._cell: Any = None
        self._every = every if self._redraws or self._display else max(every, 10.0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def _line(self, seconds: float) -> str:
        """Return the line, this number of seconds after the last one. On the line's thread."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self._display is not None:
            self._cell = self._display(_Shown(""), display_id=True)  # here: this cell's output
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _show(self) -> None:
        then = time.monotonic()
        over = False
        while not over:
            over = self._over.wait(self._every)
            now = time.monotonic()
            line, then = self._line(max(now - then, 1e-9)), now
            if self._cell is not None:
                self._cell.update(_Shown(line))
            elif self._redraws:
                columns = shutil.get_terminal_size().columns - 1
                end = "\n" if over else ""
                print(f"\r\033[K{line[:columns]}", end=end, file=self._file, flush=True)
            else:
                print(line, file=self._file, flush=True)
