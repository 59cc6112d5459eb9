"""Closes a forked child's copies of the descriptors of servers and connections.

An actor may fork, or run a `multiprocessing.Process`. Otherwise the child would keep the lock of
the state directory, the listening socket, and connections for its whole life. Then no server could
replace one that has ended.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class DescriptorOwner(Protocol):
    """An object whose descriptors must not be shared with another process."""

    def _close_in_child(self) -> None:
        """In a forked child: close the copies without a lock, and touch nothing shared."""


_owners: WeakSet[DescriptorOwner] = WeakSet()


def close_in_children(owner: DescriptorOwner) -> None:
    """Have forked children call the `_close_in_child()` of an owner while it lives."""
    _owners.add(owner)


def _close_all() -> None:
    for owner in list(_owners):
        with suppress(Exception):  # half made, or half closed
            owner._close_in_child()
    _owners.clear()


os.register_at_fork(after_in_child=_close_all)
