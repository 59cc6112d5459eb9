"""The errors of channels. All of these are CallboardErrors."""

from __future__ import annotations

from callboard.core.errors import CallboardError


class ChannelClosed(CallboardError):
    """The other side has closed: no more values come, or nobody receives any more."""


class ChannelCancelled(ChannelClosed):
    """The other side has cancelled the channel: the values in it became dead letters."""


class ChannelFailed(ChannelClosed):
    """The task that sent has failed. The error is the `__cause__`."""


class ChannelEmpty(CallboardError):
    """`receive_nowait()` or `peek()` found no value."""


class ChannelTimeout(CallboardError, TimeoutError):
    """Nothing came, or there was no room, within the time given."""


class ChannelOwnershipError(CallboardError):
    """An end is used by two at once, or by somebody that it does not belong to."""


class ChannelDeadlock(CallboardError):
    """Tasks wait for each other in a circle in which a channel is full."""
