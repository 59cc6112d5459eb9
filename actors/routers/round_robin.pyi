from typing import TypeVar

from callboard.routers.router import Router

_M = TypeVar("_M", contravariant=True)

class RoundRobinRouter(Router[_M]): ...
