"""Differences between builds of the interpreter."""

from __future__ import annotations

import sys


def has_gil() -> bool:
    """Tell whether the threads of this process share an interpreter lock."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()
