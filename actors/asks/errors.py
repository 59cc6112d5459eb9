"""The errors by which policies refuse an ask."""

from callboard.core.errors import CallboardError


class CircuitOpen(CallboardError):
    """A circuit breaker let no ask through: too many have failed of late."""


class TooManyAsks(CallboardError):
    """A rate limit let no ask through: as many as allowed wait for their turn already."""
