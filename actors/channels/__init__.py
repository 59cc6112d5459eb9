"""Bounded channels between tasks, actors, threads and coroutines.

`channel(capacity)` makes one, and returns its two ends. `select()` and `Selection` wait for any of
several ends. A `Task` is an actor that works on channels. See `docs/channels.md`.
"""

from __future__ import annotations

from callboard.channels.errors import (
    ChannelCancelled,
    ChannelClosed,
    ChannelDeadlock,
    ChannelEmpty,
    ChannelFailed,
    ChannelOwnershipError,
    ChannelTimeout,
)
from callboard.channels.receiver import Receiver
from callboard.channels.selection import Selection, select
from callboard.channels.sender import Sender, channel
from callboard.channels.task import Task

__all__ = [
    "ChannelCancelled",
    "ChannelClosed",
    "ChannelDeadlock",
    "ChannelEmpty",
    "ChannelFailed",
    "ChannelOwnershipError",
    "ChannelTimeout",
    "Receiver",
    "Selection",
    "Sender",
    "Task",
    "channel",
    "select",
]
