from typing import TypeVar

from typing_extensions import disjoint_base

from callboard.routers.router import Router

_M = TypeVar("_M", contravariant=True)

@disjoint_base
class RoundRobinRouter(Router[_M]): ...
