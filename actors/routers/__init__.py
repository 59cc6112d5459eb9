"""One receiver that stands for several.

Routers choose a ref for each message; a topic tells its subscribers. See `docs/routers.md`.
"""

from __future__ import annotations

from callboard.routers.broadcast import BroadcastRouter, GatheredAnswers
from callboard.routers.elastic import AutoScale
from callboard.routers.router import KeyRouter, LeastLoadedRouter, RoundRobinRouter, Router
from callboard.routers.topic import Subscribe, Topic, Unsubscribe

__all__ = [
    "AutoScale",
    "BroadcastRouter",
    "GatheredAnswers",
    "KeyRouter",
    "LeastLoadedRouter",
    "RoundRobinRouter",
    "Router",
    "Subscribe",
    "Topic",
    "Unsubscribe",
]
