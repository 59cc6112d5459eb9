from typing import Any, TypeVar

from callboard.routers.router import Routee, Router

_M = TypeVar("_M", contravariant=True)

class LeastLoadedRouter(Router[_M]):
    def _note_answer(self, routee: Routee, _: Any) -> None: ...
