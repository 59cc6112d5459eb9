"""A progress bar on stderr: redrawn in place on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

_WIDTH = 30
_REDRAW_SECONDS = 0.1
_LINE_SECONDS = 5.0


class Progress:
    """Show how much of a work is done; a context manager that clears its bar when left."""

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._redraws = self._stream.isatty()
        self._interval = _REDRAW_SECONDS if self._redraws else _LINE_SECONDS
        self._next = time.monotonic() + self._interval

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int, total: int) -> None:
        """Show that `done` of `total` is done, unless the last showing was just now."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval
        share = min(done / total, 1.0)
        filled = round(share * _WIDTH)
        text = f"{self._label} [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}"
        self._write(f"\r\x1b[K{text}" if self._redraws else f"{text}\n")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._redraws:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
