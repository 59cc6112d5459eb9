"""Policies for asks: retries, circuit breakers and rate limits.

Call each as `policy.call(ref.ask, message, ...)`, which returns a future. See `docs/asks.md`.
"""

from __future__ import annotations

from callboard.asks.circuit_breaker import CircuitBreaker
from callboard.asks.errors import CircuitOpen, TooManyAsks
from callboard.asks.rate_limit import RateLimit
from callboard.asks.retry import Retry

__all__ = [
    "CircuitBreaker",
    "CircuitOpen",
    "RateLimit",
    "Retry",
    "TooManyAsks",
]
