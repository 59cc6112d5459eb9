"""The errors with which policies refuse asks."""

from callboard.core.errors import CallboardError


class CircuitOpen(CallboardError):
    """A circuit breaker sent no ask, because too many have failed recently."""


class TooManyAsks(CallboardError):
    """A rate limit refused an ask, because as many as allowed already wait for their turn."""
