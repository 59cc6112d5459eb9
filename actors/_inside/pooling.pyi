from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

from callboard._inside.arguments import ActorOptions
from callboard.actor import AnyActor
from callboard.routers.router import Router

_M = TypeVar("_M")
_A = TypeVar("_A")
_Ts = TypeVarTuple("_Ts")

class Pooling:
    def pool(
        self,
        cls: Callable[[Unpack[_Ts]], AnyActor[_M, _A]],
        /,
        *args: *_Ts,
        processes: int | None = None,
        elastic: Any = None,
        router: Any = None,
        by: Any = None,
        pickle: bool = False,
        types: Any = (),
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> Router[_M, _A]: ...
