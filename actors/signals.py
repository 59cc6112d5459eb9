"""Signals that end a program: a system that handles them drains before it stops."""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any

from callboard.core.errors import CallboardError, ConfigError
from callboard.core.text import safe_repr


class Signals:
    """How many signals have come for one system.

    The handler raises in the main thread: KeyboardInterrupt for SIGINT, SystemExit with 128 and the
    signal's number for others. So the thread leaves its code, and the system's `with` block, whose
    end sees here that a signal was the reason.
    """

    def __init__(self) -> None:
        self.count = 0

    def install(self, numbers: Iterable[int]) -> None:
        """Handle these signals. Raises CallboardError outside the main thread, ConfigError."""
        if threading.current_thread() is not threading.main_thread():
            raise CallboardError(
                "install_signal_handlers() must be called in the main thread, where Python runs "
                f"signal handlers, not in the thread {threading.current_thread().name!r}"
            )
        try:
            listed = list(numbers)
        except TypeError:
            raise ConfigError(
                f"install_signal_handlers() expects a list of signals, got {safe_repr(numbers)}"
            ) from None
        chosen = [_checked(number) for number in listed]
        for number in chosen:
            if number not in _before:
                _before[number] = signal.signal(number, _handle)
            with _lock:
                _handling[number] = (*_others(self, number), weakref.ref(self))

    def restore(self) -> None:
        """Handle no more signals. The last system to do so restores the handlers from before."""
        for number in list(_handling):
            with _lock:
                handling = _handling[number] = _others(self, number)
            if not handling and threading.current_thread() is threading.main_thread():
                _give_back(number)


# By signal: the systems that handle it, and the handler from before. A system stops in any thread,
# but handlers are set in the main one, so the next signal gives back a handler that is left here
# without a system. A tuple of systems is replaced as a whole, with the lock: a handler may be
# reading it, and takes none.
_lock = threading.RLock()
_handling: dict[int, tuple[weakref.ref[Signals], ...]] = {}
_before: dict[int, Any] = {}


def _others(signals: Signals, number: int) -> tuple[weakref.ref[Signals], ...]:
    """Return the systems that handle a signal, without `signals` and those that are gone."""
    return tuple(ref for ref in _handling.get(number, ()) if ref() not in (signals, None))


def _checked(number: Any) -> signal.Signals:
    try:
        checked = signal.SIGKILL if isinstance(number, bool) else signal.Signals(number)
    except ValueError:
        checked = signal.SIGKILL
    if checked in (signal.SIGKILL, signal.SIGSTOP):
        raise ConfigError(f"expected a signal that a program can handle, got {safe_repr(number)}")
    return checked


def _handle(number: int, frame: FrameType | None) -> None:
    handling = [signals for ref in _handling.get(number, ()) if (signals := ref()) is not None]
    if not handling:
        _give_back(number)
        signal.raise_signal(number)
        return
    for signals in handling:
        signals.count += 1
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _give_back(number: int) -> None:
    before = _before.pop(number, None)
    _handling.pop(number, None)
    if signal.getsignal(number) is _handle:
        signal.signal(number, signal.SIG_DFL if before is None else before)
