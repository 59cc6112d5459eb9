"""Actors in separate processes, behind a router: `system.pool()`. See `docs/pools.md`.

Each worker process serves one actor over a Unix socket. The router's refs are those of
`callboard.remote`.
"""

__all__ = ()
