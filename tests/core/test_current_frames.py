"""Frames of threads are read while there is garbage to be collected."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import pytest

from callboard.core.tracebacks import current_frames


def test_no_collection_begins_within_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 would wait for itself, for ever, if that ended a `threading.local`."""
    collected: list[bool] = []
    look = sys._current_frames

    def looked() -> dict[int, Any]:
        collected.append(gc.isenabled())
        return look()

    monkeypatch.setattr(sys, "_current_frames", looked)
    assert threading.get_ident() in current_frames()
    assert collected == [False]
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        current_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()
