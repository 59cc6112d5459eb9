"""Actors in separate processes, behind a router: `system.pool()`. See `docs/pools.md`.

Each worker process serves one actor to its parent, over a channel in shared memory. The encoding,
and the actor that passes messages on, are those of `callboard.remote`.
"""

__all__ = ()
