"""A forked child's copies of servers and connections, which it closes at once.

An actor may fork, or run a `multiprocessing.Process`. Otherwise the child would keep the lock of
the state directory, the socket to listen on, and connections, as long as it lives. Then no server
could take the place of one that has ended.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class Holder(Protocol):
    """An object with descriptors for this process alone."""

    def forsake(self) -> None:
        """Close the copies, in a forked child, and touch nothing that is shared. Take no lock."""


_holders: WeakSet[Holder] = WeakSet()


def let_go_in_children(holder: Holder) -> None:
    """Have a child call `forsake()`, as long as somebody has the holder."""
    _holders.add(holder)


def _let_go() -> None:
    for holder in list(_holders):
        with suppress(Exception):  # half made, or half closed
            holder.forsake()
    _holders.clear()


os.register_at_fork(after_in_child=_let_go)
