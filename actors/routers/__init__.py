"""One receiver that stands for several.

Routers choose a ref at `tell`; a topic tells its subscribers. See `docs/routers.md`.
"""

from __future__ import annotations

from callboard.routers.broadcast import BroadcastRouter
from callboard.routers.by_key import KeyRouter
from callboard.routers.round_robin import RoundRobinRouter
from callboard.routers.topic import Subscribe, Topic, Unsubscribe

__all__ = ["BroadcastRouter", "KeyRouter", "RoundRobinRouter", "Subscribe", "Topic", "Unsubscribe"]
