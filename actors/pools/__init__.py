"""Actors in processes of their own, behind a router: `system.pool()`. See `docs/pools.md`.

`spawn_pool` starts worker processes, each of which serves one actor over a Unix socket, and returns
a router over refs of `callboard.remote`.
"""

from callboard.pools.pool import spawn_pool

__all__ = ["spawn_pool"]
