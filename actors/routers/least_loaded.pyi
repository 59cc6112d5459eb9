from typing import Any, TypeVar

from typing_extensions import disjoint_base

from callboard.routers.router import Routee, Router

_M = TypeVar("_M", contravariant=True)

@disjoint_base
class LeastLoadedRouter(Router[_M]):
    def _note_answer(self, routee: Routee, _: Any) -> None: ...
