"""The errors of channels. All of these are CallboardErrors."""

from __future__ import annotations

from callboard.core.errors import CallboardError


class ChannelClosed(CallboardError):
    """The channel is closed: no more values will come, or there are no receivers."""


class ChannelCancelled(ChannelClosed):
    """The channel was cancelled. The values in it became dead letters."""


class ChannelFailed(ChannelClosed):
    """The sender's task has failed. Its error is the `__cause__`."""


class ChannelEmpty(CallboardError):
    """`receive_nowait()` or `peek()` found no value."""


class ChannelTimeout(CallboardError, TimeoutError):
    """No value came, or there was no room, within the timeout."""


class ChannelOwnershipError(CallboardError):
    """An end was used by two users at once, or by one that does not own it."""


class ChannelDeadlock(CallboardError):
    """Tasks wait for each other in a circle that includes a full channel."""
