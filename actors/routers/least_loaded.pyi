from typing import Any

from typing_extensions import TypeVar, disjoint_base

from callboard.routers.router import Routee, Router

_M = TypeVar("_M", contravariant=True)
_R = TypeVar("_R", covariant=True, default=Any)

@disjoint_base
class LeastLoadedRouter(Router[_M, _R]):
    def _note_answer(self, routee: Routee, _: Any) -> None: ...
